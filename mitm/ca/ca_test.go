package ca

import (
	"crypto/ecdsa"
	"crypto/x509"
	"fmt"
	"io/fs"
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
	first, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	second, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !first.Certificate.Equal(second.Certificate) {
		t.Error("the second load made another certificate")
	}
	if runtime.GOOS != "windows" {
		for name, want := range map[string]fs.FileMode{".": 0o700, keyName: 0o600, certName: 0o644} {
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
	if _, err := Load(dir); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []fs.FileMode{0o640, 0o604, 0o660} {
		if err := os.Chmod(filepath.Join(dir, keyName), mode); err != nil {
			t.Fatal(err)
		}
		_, err := Load(dir)
		if err == nil || !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
}

func TestCARefusesBrokenKey(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, keyName), []byte("-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), keyName) {
		t.Errorf("error %v", err)
	}
}

func TestCARenewsExpiredCertificate(t *testing.T) {
	dir := t.TempDir()
	authority, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	old := *authority.Certificate
	old.NotBefore, old.NotAfter = time.Now().Add(-48*time.Hour), time.Now().Add(-time.Hour)
	der, err := x509.CreateCertificate(nil, &old, &old, &authority.key.PublicKey, authority.key)
	if err != nil {
		t.Fatal(err)
	}
	if err := writeAtomically(authority.CertFile, pemCertificate, der, 0o644, true); err != nil {
		t.Fatal(err)
	}
	renewed, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if time.Until(renewed.Certificate.NotAfter) < 365*24*time.Hour {
		t.Errorf("ends at %v", renewed.Certificate.NotAfter)
	}
	if !renewed.key.Equal(authority.key) || renewed.Certificate.Subject.String() != authority.Certificate.Subject.String() {
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
	authority, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	pub, err := authority.Certificate.PublicKey.(*ecdsa.PublicKey).Bytes()
	if err != nil || !authority.Certificate.PublicKey.(*ecdsa.PublicKey).Equal(&authority.key.PublicKey) {
		t.Fatal("certificate and key do not belong together", err)
	}
	fmt.Printf("key=%x\n", pub)
}
