package ca_test

import (
	"crypto/x509"
	"fmt"
	"os"

	"unwire/mitm/ca"
)

// Create a certificate authority that is limited to one domain, and issue a certificate.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)

	authority, err := ca.New(dir, []string{"example.com"})
	if err != nil {
		panic(err)
	}
	leaf, err := authority.Leaf("api.example.com")
	if err != nil {
		panic(err)
	}

	// A client that trusts the CA accepts the certificate.
	roots := x509.NewCertPool()
	roots.AddCert(authority.Certificate)
	_, err = leaf.Leaf.Verify(x509.VerifyOptions{DNSName: "api.example.com", Roots: roots})
	fmt.Println("verified:", err == nil)

	_, err = authority.Leaf("other.example.org")
	fmt.Println(err)
	// Output:
	// verified: true
	// mitm: cannot create a certificate for other.example.org: the CA is limited to example.com
}
