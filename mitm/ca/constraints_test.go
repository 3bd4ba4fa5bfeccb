package ca

import (
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// verify checks a leaf as a client does that trusts the CA.
func verify(t *testing.T, a *Authority, leaf *x509.Certificate, host string) error {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(a.Certificate)
	if strings.Count(host, ":") > 1 {
		host = "[" + host + "]"
	}
	_, err := leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: host})
	return err
}

func TestConstraints(t *testing.T) {
	for _, c := range []struct {
		hosts         []string
		inside, other []string
	}{
		{nil, []string{"a.example.com", "127.0.0.1", "::1"}, nil},
		{[]string{"Example.com"}, []string{"example.com", "api.example.com"}, []string{"example.org", "notexample.com", "127.0.0.1", "::1"}},
		{[]string{"*.example.com"}, []string{"api.example.com"}, []string{"example.org"}},
		{[]string{"127.0.0.1"}, []string{"127.0.0.1"}, []string{"127.0.0.2", "::1", "example.com", "localhost"}},
		{[]string{"localhost", "::1"}, []string{"localhost", "::1"}, []string{"::2", "127.0.0.1", "local"}},
	} {
		a, err := New(filepath.Join(t.TempDir(), "ca"), c.hosts)
		if err != nil {
			t.Fatal(err)
		}
		for _, host := range c.inside {
			leaf, err := a.Leaf(host)
			if err != nil || !a.MayIssueFor(host) {
				t.Errorf("%q: %s: %v", c.hosts, host, err)
				continue
			}
			if err := verify(t, a, leaf.Leaf, host); err != nil {
				t.Errorf("%q: %s: %v", c.hosts, host, err)
			}
		}
		for _, host := range c.other {
			if _, err := a.Leaf(host); err == nil || a.MayIssueFor(host) {
				t.Errorf("%q: made a certificate for %s", c.hosts, host)
			}

			// Whoever has the key cannot vouch for others either.
			leaf, err := a.sign(host)
			if err != nil {
				t.Fatal(err)
			}
			if err := verify(t, a, leaf.Leaf, host); err == nil {
				t.Errorf("%q: a client accepts %s", c.hosts, host)
			}
		}
	}
}

func TestNewErrors(t *testing.T) {
	for _, host := range []string{"", "a b", "https://example.com", "example.com:443", "*", "..", strings.Repeat("a.", 130) + "a", "exa\x00mple"} {
		dir := filepath.Join(t.TempDir(), "ca")
		if _, err := New(dir, []string{host}); !errors.Is(err, ErrHost) {
			t.Errorf("%q: %v", host, err)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%q: a folder was made", host)
		}
	}
}

// A renewed certificate vouches for no more than the one before.
func TestRenewKeepsConstraints(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ca")
	a, err := New(dir, []string{"example.com", "127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	old := *a.Certificate
	old.NotAfter = time.Now().Add(time.Hour)
	der, err := x509.CreateCertificate(nil, &old, &old, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	if err := writeAtomically(a.CertFile, pemCertificate, der, 0o644, true); err != nil {
		t.Fatal(err)
	}
	renewed, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := renewed.Hosts(); !slices.Equal(got, []string{"example.com", "127.0.0.1"}) || !renewed.key.Equal(a.key) {
		t.Errorf("%q", got)
	}
	if time.Until(renewed.Certificate.NotAfter) < renewBefore {
		t.Error("it was not renewed")
	}
}

func TestNewReplaces(t *testing.T) {
	dir := t.TempDir()
	first, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	second, err := New(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if first.key.Equal(second.key) || !again.Certificate.Equal(second.Certificate) || len(again.Hosts()) > 0 {
		t.Errorf("%v, then %v, then %v", first.Certificate.Subject, second.Certificate.Subject, again.Certificate.Subject)
	}
	if use := again.Certificate.ExtKeyUsage; !slices.Equal(use, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}) {
		t.Errorf("extended key usage %v", use)
	}
}

// Who can write to the folder could put another CA there.
func TestFolderOfOthers(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes do not show access on Windows")
	}
	dir := t.TempDir()
	if _, err := Load(dir); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []os.FileMode{0o770, 0o707, 0o777} {
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), "chmod go-w") {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(dir); err != nil {
		t.Errorf("others may read: %v", err)
	}
}
