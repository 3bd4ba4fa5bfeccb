package mitm

import (
	"crypto/ecdsa"
	"crypto/x509"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestCAIsMadeOnceAndKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ca")
	first, err := LoadCA(dir)
	if err != nil {
		t.Fatal(err)
	}
	second, err := LoadCA(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !first.Certificate().Equal(second.Certificate()) {
		t.Error("the second load made another certificate")
	}
	if runtime.GOOS != "windows" {
		for name, want := range map[string]fs.FileMode{".": 0o700, caKeyName: 0o600, caCertName: 0o644} {
			info, err := os.Stat(filepath.Join(dir, name))
			if err != nil || info.Mode().Perm() != want {
				t.Errorf("%s: mode %v, %v; want %o", name, info.Mode(), err, want)
			}
		}
	}
	left, _ := filepath.Glob(filepath.Join(dir, ".new-*"))
	if len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestCARefusesKeyThatOthersCanRead(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes do not show access on Windows")
	}
	dir := t.TempDir()
	if _, err := LoadCA(dir); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []fs.FileMode{0o640, 0o604, 0o660} {
		if err := os.Chmod(filepath.Join(dir, caKeyName), mode); err != nil {
			t.Fatal(err)
		}
		_, err := LoadCA(dir)
		if err == nil || !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
}

func TestCARefusesBrokenKey(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, caKeyName), []byte("-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadCA(dir); err == nil || !strings.Contains(err.Error(), caKeyName) {
		t.Errorf("error %v", err)
	}
}

func TestCARenewsExpiredCertificate(t *testing.T) {
	dir := t.TempDir()
	ca, err := LoadCA(dir)
	if err != nil {
		t.Fatal(err)
	}
	old := *ca.cert
	old.NotBefore, old.NotAfter = time.Now().Add(-48*time.Hour), time.Now().Add(-time.Hour)
	der, err := x509.CreateCertificate(nil, &old, &old, &ca.key.PublicKey, ca.key)
	if err != nil {
		t.Fatal(err)
	}
	if err := publish(ca.certFile, pemCertificate, der, 0o644, true); err != nil {
		t.Fatal(err)
	}
	renewed, err := LoadCA(dir)
	if err != nil {
		t.Fatal(err)
	}
	if time.Until(renewed.cert.NotAfter) < 365*24*time.Hour {
		t.Errorf("ends at %v", renewed.cert.NotAfter)
	}
	if !renewed.key.Equal(ca.key) || renewed.cert.Subject.String() != ca.cert.Subject.String() {
		t.Error("renewing changed the key or the name")
	}
}

// TestCAConcurrentFirstUse lets several processes make the CA at once: what any
// of them signs must verify with the certificate that is left.
func TestCAConcurrentFirstUse(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ca")
	var wg sync.WaitGroup
	fingerprints := make([]string, 6)
	for i := range fingerprints {
		wg.Go(func() {
			cmd := exec.Command(os.Args[0], "-test.run=^TestCAHelperProcess$", "-test.v")
			cmd.Env = append(os.Environ(), "UNWIRE_TEST_CA="+dir)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%v: %s", err, out)
				return
			}
			_, rest, _ := strings.Cut(string(out), "key=")
			fingerprints[i], _, _ = strings.Cut(rest, "\n")
		})
	}
	wg.Wait()
	for _, f := range fingerprints {
		if f == "" || f != fingerprints[0] {
			t.Fatalf("keys differ: %q", fingerprints)
		}
	}
}

func TestCAHelperProcess(t *testing.T) {
	dir := os.Getenv("UNWIRE_TEST_CA")
	if dir == "" {
		return // TestCAConcurrentFirstUse runs it
	}
	ca, err := LoadCA(dir)
	if err != nil {
		t.Fatal(err)
	}
	pub, err := ca.cert.PublicKey.(*ecdsa.PublicKey).Bytes()
	if err != nil || !ca.cert.PublicKey.(*ecdsa.PublicKey).Equal(&ca.key.PublicKey) {
		t.Fatal("certificate and key do not belong together", err)
	}
	fmt.Printf("key=%x\n", pub)
}

func TestLeaf(t *testing.T) {
	ca, err := LoadCA(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca.Certificate())
	for _, host := range []string{"api2.cursor.sh", "API2.Cursor.sh.", "127.0.0.1", "::1", "localhost"} {
		leaf, err := ca.leaf(host)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(host, ".")
		if net.ParseIP(host) != nil {
			name = "[" + host + "]"
		}
		if _, err := leaf.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots}); err != nil {
			t.Errorf("%s: %v", host, err)
		}
		if d := leaf.Leaf.NotAfter.Sub(leaf.Leaf.NotBefore); d > 397*24*time.Hour {
			t.Errorf("%s: valid for %v", host, d)
		}
	}
	if _, err := ca.leaf(strings.Repeat("a", 300)); err == nil {
		t.Error("a name of 300 bytes got a certificate")
	}
}

func TestLeafIsMadeOnceAtATime(t *testing.T) {
	ca, err := LoadCA(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	serials := make([]string, 32)
	var wg sync.WaitGroup
	for i := range serials {
		wg.Go(func() {
			leaf, err := ca.leaf("one.example")
			if err != nil {
				t.Error(err)
				return
			}
			serials[i] = leaf.Leaf.SerialNumber.String()
		})
	}
	wg.Wait()
	for _, s := range serials {
		if s != serials[0] {
			t.Fatal("several certificates were made for one name")
		}
	}
}

func TestLeafCacheIsBounded(t *testing.T) {
	ca, err := LoadCA(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	first, err := ca.leaf("h0.example")
	if err != nil {
		t.Fatal(err)
	}
	for i := range maxLeaves + 10 {
		ca.leaves.put(fmt.Sprintf("n%d.example", i), first)
	}
	if n := len(ca.leaves.byName); n != maxLeaves || ca.leaves.recent.Len() != maxLeaves {
		t.Errorf("%d leaves kept", n)
	}
	if ca.leaves.get("h0.example") != nil || ca.leaves.get(fmt.Sprintf("n%d.example", maxLeaves)) == nil {
		t.Error("not the least recently used one went")
	}
}
