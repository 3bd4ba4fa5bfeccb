package trust

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"unwire/captures/need"
)

func testCert(t *testing.T) Cert {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(0xabc), Subject: pkix.Name{CommonName: "unwire local CA 01ab"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	c := Cert{cert, filepath.Join(t.TempDir(), "ca.pem")}
	if err := os.WriteFile(c.File, c.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	return c
}

// folder makes folders below a new one and returns that.
func folder(t *testing.T, names ...string) string {
	t.Helper()
	root := t.TempDir()
	for _, name := range names {
		if err := os.MkdirAll(filepath.Join(root, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func anyPath(name string) (string, error) { return "/bin/" + name, nil }

func plan(t *testing.T, m Machine, store Store, c Cert, remove bool) string {
	t.Helper()
	steps, err := m.Plan(store, c, remove)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, s := range steps {
		shown := strings.NewReplacer("'"+c.File+"'", "CA", c.File, "CA", m.Root, "") // quoted where temporary files have a space in their names
		lines = append(lines, shown.Replace(s.String()))
	}
	return strings.Join(lines, "\n")
}

func TestSystemPlans(t *testing.T) {
	c := testCert(t)
	for _, s := range []struct{ os, folder, install, remove string }{
		{"linux", "/usr/local/share/ca-certificates", "write /usr/local/share/ca-certificates/unwire-local-ca-01ab.crt\nrun /bin/update-ca-certificates", ""},
		{"linux", "/etc/pki/ca-trust/source/anchors", "write /etc/pki/ca-trust/source/anchors/unwire-local-ca-01ab.pem\nrun /bin/update-ca-trust extract", ""},
		{"linux", "/etc/ca-certificates/trust-source/anchors", "write /etc/ca-certificates/trust-source/anchors/unwire-local-ca-01ab.crt\nrun /bin/trust extract-compat", ""},
		{"darwin", "", "run security add-trusted-cert -d -r trustRoot -k /Library/Keychains/System.keychain CA", "run security remove-trusted-cert -d CA"},
		{"windows", "", "run certutil -user -addstore Root CA", "run certutil -user -delstore Root abc"},
	} {
		m := Machine{OS: s.os, Root: folder(t, s.folder), Admin: true, LookPath: anyPath}
		if got := plan(t, m, System, c, false); got != s.install {
			t.Errorf("%s: %s", s.folder+s.os, got)
		}
		if got := plan(t, m, System, c, true); got != s.remove {
			t.Errorf("%s, remove: %s", s.folder+s.os, got)
		}
		m.Admin = false
		if steps, err := m.Plan(System, c, false); s.os != "windows" && (!errors.Is(err, ErrNotRoot) || len(steps) == 0) {
			t.Errorf("%s without rights: %v, %v", s.os, steps, err)
		}
	}
	m := Machine{OS: "linux", Root: folder(t), Admin: true, LookPath: anyPath}
	if _, err := m.Plan(System, c, false); err == nil {
		t.Error("a plan for a system without a store")
	}
}

// The steps are made: the update command, here one that lists the folder, sees
// the file, and removing undoes it.
func TestSystemDo(t *testing.T) {
	c := testCert(t)
	const anchors = "usr/local/share/ca-certificates"
	root := folder(t, anchors, "bin")
	update := filepath.Join(root, "bin", "update-ca-certificates")
	script := "#!/bin/sh\nls '" + filepath.Join(root, anchors) + "' > '" + root + "/seen'\n"
	if err := os.WriteFile(update, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	m := Machine{OS: "linux", Root: root, Admin: true, LookPath: func(name string) (string, error) { return filepath.Join(root, "bin", name), nil }}
	for _, remove := range []bool{false, true} {
		steps, err := m.Plan(System, c, remove)
		if err != nil {
			t.Fatal(err)
		}
		if err := Do(t.Context(), steps); err != nil {
			t.Fatal(err)
		}
		seen, err := os.ReadFile(root + "/seen")
		if err != nil || strings.Contains(string(seen), "unwire-local-ca-01ab.crt") == remove {
			t.Errorf("remove %v: the store is made of %q, %v", remove, seen, err)
		}
	}
	if err := os.WriteFile(update, []byte("#!/bin/sh\necho no luck >&2\nexit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	steps, err := m.Plan(System, c, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := Do(t.Context(), steps); err == nil || !strings.Contains(err.Error(), "no luck") {
		t.Errorf("a command that fails: %v", err)
	}
}

// With the real certutil, in a home folder of the test's own.
func TestNSS(t *testing.T) {
	certutil := need.Program(t, "certutil", "libnss3-tools")
	c := testCert(t)
	home := folder(t, ".pki/nssdb", ".mozilla/firefox/a.default", ".mozilla/firefox/b.empty")
	m := Machine{OS: "linux", Home: home, LookPath: exec.LookPath}
	if _, err := m.Plan(NSS, c, false); err == nil {
		t.Error("a plan without a database")
	}
	dbs := []string{"sql:" + home + "/.pki/nssdb", "sql:" + home + "/.mozilla/firefox/a.default"}
	for _, db := range dbs {
		if out, err := exec.Command(certutil, "-N", "--empty-password", "-d", db).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	listed := func(db string) bool {
		out, err := exec.Command(certutil, "-L", "-d", db).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return strings.Contains(string(out), c.Name())
	}
	for _, remove := range []bool{false, true, true} {
		steps, err := m.Plan(NSS, c, remove)
		if err != nil || len(steps) != 2 {
			t.Fatalf("%v, %v", steps, err)
		}
		if err := Do(t.Context(), steps); err != nil {
			t.Fatal(err)
		}
		for _, db := range dbs {
			if listed(db) == remove {
				t.Errorf("remove %v: %s has it: %v", remove, db, listed(db))
			}
		}
	}
	m.LookPath = func(string) (string, error) { return "", exec.ErrNotFound }
	if _, err := m.Plan(NSS, c, false); err == nil || !strings.Contains(err.Error(), "libnss3-tools") {
		t.Errorf("without certutil: %v", err)
	}
}

// With the real keytool, on a store of the test's own.
func TestJava(t *testing.T) {
	keytool := need.Program(t, "keytool", "default-jre-headless", "-help")
	c := testCert(t)
	home := folder(t, "bin", "lib/security")
	store := filepath.Join(home, "lib/security/cacerts")
	if err := os.Symlink(keytool, filepath.Join(home, "bin", "keytool")); err != nil {
		t.Fatal(err)
	}
	m := Machine{OS: "linux", JavaHome: home, LookPath: exec.LookPath}
	if _, err := m.Plan(Java, c, false); err == nil {
		t.Error("a plan without a store")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if out, err := exec.CommandContext(ctx, keytool, "-importcert", "-noprompt", "-keystore", store, "-storepass", javaPassword, "-alias", "other", "-file", c.File).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	listed := func() bool {
		out, err := exec.CommandContext(ctx, keytool, "-list", "-keystore", store, "-storepass", javaPassword).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return strings.Contains(string(out), "unwire-local-ca-01ab")
	}
	for _, remove := range []bool{false, true} {
		steps, err := m.Plan(Java, c, remove)
		if err != nil {
			t.Fatal(err)
		}
		if err := Do(ctx, steps); err != nil {
			t.Fatal(err)
		}
		if listed() == remove {
			t.Errorf("remove %v: listed %v", remove, listed())
		}
	}
	if _, err := (Machine{OS: "linux", JavaHome: t.TempDir(), LookPath: exec.LookPath}).Plan(Java, c, false); err == nil {
		t.Error("a plan for a JAVA_HOME without Java")
	}
}
