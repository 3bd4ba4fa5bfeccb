//go:build unix

package launch_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"unwire/captures/need"
	"unwire/mitm/launch"
)

// TestPrograms runs programs that find their CAs and their proxy each in a way of its
// own, with configurations that name other CAs.
func TestPrograms(t *testing.T) {
	origin := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/-/ping":
			w.Header().Set("content-type", "application/json")
			_, _ = io.WriteString(w, "{}")
		default:
			_, _ = io.WriteString(w, "from the origin")
		}
	}))
	origin.TLS = &tls.Config{Certificates: []tls.Certificate{certificateOf(t, "localhost")}, MinVersion: tls.VersionTLS12}
	origin.StartTLS()
	defer origin.Close()
	base := strings.Replace(origin.URL, "127.0.0.1", "localhost", 1)
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	file(".npmrc", "cafile="+file("other.pem", "")+"\n")
	file(".wgetrc", "user_agent = of the user's configuration\n")
	url := base + "/file"
	saved := filepath.Join(dir, "saved")

	for _, c := range []struct {
		name  string
		argv  []string
		env   []string
		want  string // in the output
		saved bool   // the output is in a file
		agent string // of the recorded request
	}{
		{name: "wget", argv: []string{need.Program(t, "wget", "wget"), "-q", "-O", "-", url}, want: "from the origin", agent: "of the user's configuration"},
		{name: "wget, another configuration", argv: []string{"wget", "-q", "-O", "-", url}, env: []string{"WGETRC=" + file("wgetrc", "user_agent = of the variable")}, want: "from the origin", agent: "of the variable"},
		{name: "npm", argv: []string{need.Program(t, "npm", "npm"), "ping", "--registry", base + "/", "--fetch-retries=0", "--userconfig", filepath.Join(dir, ".npmrc")}},
		{name: "apt", argv: []string{aptHelper(t), "download-file", url, saved}, want: "from the origin", saved: true},
		{
			name: "apt, another configuration", argv: []string{aptHelper(t), "download-file", url, saved + "2"},
			env: []string{"APT_CONFIG=" + file("apt.conf", "Acquire::https::User-Agent \"of the variable\";\n")}, agent: "of the variable",
		},
		{name: "java", argv: []string{javaCompiler(t), "testdata/Get.java", url}, want: "from the origin"},
		{name: "git", argv: []string{need.Program(t, "git", "git"), "ls-remote", base + "/repository"}, want: "-"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRecorder(t, origin)
			code, out, stderr, err := r.run("", c.argv, func(o *launch.Options) {
				o.Env = append(os.Environ(), "HOME="+dir, "GIT_TERMINAL_PROMPT=0")
				o.Env = append(o.Env, c.env...)
			})
			if c.saved {
				data, _ := os.ReadFile(saved)
				out = string(data)
			}
			// git finds no repository; that it asked is what counts.
			if c.want != "-" && (code != 0 || err != nil || !strings.Contains(out, c.want)) {
				t.Errorf("status %d, %v: %s%s", code, err, out, stderr)
			}
			if err := r.store.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			n := 0
			for ex, err := range r.store.Exchanges(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				if agent := ex.RequestHeaders.Get("user-agent"); ex.Status == 200 && strings.Contains(agent, c.agent) {
					n++
				}
			}
			if n == 0 {
				t.Errorf("nothing was recorded: %s%s", out, stderr)
			}
		})
	}
}

// certificateOf makes a self-signed certificate for a host.
func certificateOf(t *testing.T, host string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{host}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// aptHelper finds the program that downloads as apt does.
func aptHelper(t *testing.T) string {
	t.Helper()
	const path = "/usr/lib/apt/apt-helper"
	if _, err := os.Stat(path); err != nil {
		t.Skipf("no apt here: %v", err)
	}
	return path
}

// javaCompiler finds a java that runs source files.
func javaCompiler(t *testing.T) string {
	t.Helper()
	need.Program(t, "javac", "default-jdk-headless", "-version")
	return need.Program(t, "java", "default-jdk-headless", "-version")
}

// What a command had in the environment comes first; other users can read its CAs, and
// nothing else.
func TestTrustVariables(t *testing.T) {
	r := newRecorder(t)
	script := `printf '%s\n' "$JAVA_TOOL_OPTIONS"; dir=$(dirname "$SSL_CERT_FILE"); stat -c '%a %n' "$dir" "$dir"/*`
	code, out, stderr, err := r.run("", []string{"sh", "-c", script}, func(o *launch.Options) {
		o.Env = append(o.Env, "JAVA_TOOL_OPTIONS=-Xmx100m")
	})
	if code != 0 || err != nil {
		t.Fatal(code, err, stderr)
	}
	if !strings.HasPrefix(out, "-Xmx100m -Dhttp.proxyHost=127.0.0.1 ") {
		t.Errorf("JAVA_TOOL_OPTIONS: %s", out)
	}
	public := map[string]string{"ca-bundle.pem": "644", "ca-extra.pem": "644", "ca-store.p12": "644", "apt.conf": "644"}
	for line := range strings.Lines(out) {
		mode, path, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || !filepath.IsAbs(path) {
			continue
		}
		want := "600"
		if m, ok := public[filepath.Base(path)]; ok {
			want = m
			delete(public, filepath.Base(path))
		} else if strings.HasPrefix(filepath.Base(path), "unwire-") {
			want = "711"
		}
		if mode != want {
			t.Errorf("%s: mode %s, want %s", filepath.Base(path), mode, want)
		}
	}
	if len(public) > 0 {
		t.Errorf("not there: %v", public)
	}
}

// What is secret in the user's own files is not copied into public ones.
func TestTrustFilesHoldNoSecrets(t *testing.T) {
	const secret = "made-up-secret-of-the-tests"
	home := t.TempDir()
	key := "-----BEGIN PRIVATE KEY-----\n" + secret + "\n-----END PRIVATE KEY-----\n"
	for name, text := range map[string]string{".wgetrc": "password = " + secret + "\n", "cas.pem": key} {
		if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	script := `cd "$(dirname "$SSL_CERT_FILE")" && grep -q ` + secret + ` "$WGETRC" && find . -type f -perm -004 -exec grep -l ` + secret + ` {} +; find . -type f -perm -004`
	code, out, stderr, err := newRecorder(t).run("", []string{"sh", "-c", script}, func(o *launch.Options) {
		o.Env = append(o.Env, "HOME="+home, "WGETRC=", "SSL_CERT_FILE="+filepath.Join(home, "cas.pem"), "NODE_EXTRA_CA_CERTS="+filepath.Join(home, "cas.pem"))
	})
	if code != 0 || err != nil {
		t.Fatal(code, err, stderr)
	}
	if n := strings.Count(out, "./"); n != 4 || strings.Contains(out, "wgetrc") {
		t.Errorf("public files, those with the secret twice:\n%s", out)
	}
}

// Another user's program, as apt's, reads the CAs too.
func TestTrustOfAnotherUser(t *testing.T) {
	need.OtherUser(t)
	r := newRecorder(t)
	setpriv := need.Program(t, "setpriv", "util-linux", "--version")
	code, out, stderr, err := r.run("", []string{setpriv, "--reuid=65534", "--clear-groups", "sh", "-c", `cat "$SSL_CERT_FILE"; ls "$(dirname "$SSL_CERT_FILE")"`}, func(o *launch.Options) {
		o.Env = append(o.Env, fmt.Sprint("TMPDIR=", os.TempDir()))
	})
	if err != nil || !strings.Contains(out, "BEGIN CERTIFICATE") || code == 0 {
		t.Errorf("status %d, %v: %.200s%s", code, err, out, stderr)
	}
}
