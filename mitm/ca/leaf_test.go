package ca

import (
	"crypto/x509"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestLeaf(t *testing.T) {
	authority, err := Load(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(authority.Certificate)
	for _, host := range []string{"api2.cursor.sh", "API2.Cursor.sh.", "127.0.0.1", "::1", "localhost"} {
		leaf, err := authority.Leaf(host)
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
	if _, err := authority.Leaf(strings.Repeat("a", 300)); err == nil {
		t.Error("a name of 300 bytes got a certificate")
	}
}

func TestLeafIsMadeOnceAtATime(t *testing.T) {
	authority, err := Load(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	serials := make([]string, 32)
	var wg sync.WaitGroup
	for i := range serials {
		wg.Go(func() {
			leaf, err := authority.Leaf("one.example")
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
	authority, err := Load(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	first, err := authority.Leaf("h0.example")
	if err != nil {
		t.Fatal(err)
	}
	for i := range maxLeaves + 10 {
		authority.leaves.put(fmt.Sprintf("n%d.example", i), first)
	}
	if n := len(authority.leaves.byName); n != maxLeaves || authority.leaves.lru.Len() != maxLeaves {
		t.Errorf("%d leaves kept", n)
	}
	if authority.leaves.get("h0.example") != nil || authority.leaves.get(fmt.Sprintf("n%d.example", maxLeaves)) == nil {
		t.Error("not the least recently used one went")
	}
}
