package ca

import (
	"container/list"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

const (
	// leafValidity is the period for which a leaf certificate, i.e. that of a host, is valid. Clients reject
	// certificates that are valid for more than 398 days.
	leafValidity = 90 * 24 * time.Hour
	// leafRenewBefore is the remaining validity at which a leaf certificate is replaced.
	leafRenewBefore = 24 * time.Hour

	// maxLeaves limits the number of cached certificates, and maxHostLength the length of a host name in bytes.
	maxLeaves     = 1024
	maxHostLength = 253
)

// A leafCache is an LRU cache of leaf certificates. All of them share one key, which exists only in memory.
type leafCache struct {
	// key is the private key of all leaf certificates.
	key *ecdsa.PrivateKey
	// inProgress makes concurrent requests for the same name share one certificate, instead of creating several.
	inProgress singleflight.Group

	// mu guards lru and byName.
	mu sync.Mutex
	// lru is a list of *leafEntry, the most recently used first.
	lru list.List

	// byName maps host names to elements of lru.
	byName map[string]*list.Element
}

// A leafEntry is the cached certificate for a host name.
type leafEntry struct {
	// name is the host name for which the certificate was issued.
	name string
	// cert is the certificate with its key.
	cert *tls.Certificate
}

// init creates the private key of all leaf certificates.
func (c *leafCache) init() (err error) {
	c.byName = make(map[string]*list.Element)
	c.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	return err
}

// get returns the cached certificate for a host name, or nil if there is none or it expires soon.
func (c *leafCache) get(name string) *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.byName[name]
	if !ok {
		return nil
	}
	entry := e.Value.(*leafEntry)
	if time.Until(entry.cert.Leaf.NotAfter) < leafRenewBefore {
		return nil
	}
	c.lru.MoveToFront(e)
	return entry.cert
}

// put adds a certificate to the cache, and removes the least recently used one if the cache is full.
func (c *leafCache) put(name string, cert *tls.Certificate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.byName[name]; ok {
		c.lru.Remove(e)
	}
	c.byName[name] = c.lru.PushFront(&leafEntry{name, cert})
	for c.lru.Len() > maxLeaves {
		last := c.lru.Back()
		c.lru.Remove(last)
		delete(c.byName, last.Value.(*leafEntry).name)
	}
}

// Leaf returns a certificate for a host name or an IP address, with its private key. It is created only once,
// even if several connections request it at the same time.
func (a *Authority) Leaf(host string) (*tls.Certificate, error) {
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	if name == "" || len(name) > maxHostLength {
		return nil, fmt.Errorf("mitm: cannot create a certificate for host %.40q: the name has %d bytes", host, len(host))
	}
	if !a.MayIssueFor(name) {
		return nil, fmt.Errorf("mitm: cannot create a certificate for %s: the CA is limited to %s", name, strings.Join(a.Hosts(), ", "))
	}
	if cert := a.leaves.get(name); cert != nil {
		return cert, nil
	}

	// Another goroutine may have finished since the check above.
	cert, err, _ := a.leaves.inProgress.Do(name, func() (any, error) {
		if cert := a.leaves.get(name); cert != nil {
			return cert, nil
		}
		cert, err := a.sign(name)
		if err != nil {
			return nil, fmt.Errorf("mitm: cannot create a certificate for %s: %w", name, err)
		}
		a.leaves.put(name, cert)
		return cert, nil
	})
	if err != nil {
		return nil, err
	}
	return cert.(*tls.Certificate), nil
}

// sign creates a certificate for a host name.
func (a *Authority) sign(name string) (*tls.Certificate, error) {
	serial, err := serialNumber()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{Organization: []string{"unwire"}},
		NotBefore:    time.Now().Add(-clockSkew),
		NotAfter:     time.Now().Add(leafValidity),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}

	// A leaf must not outlive the CA's certificate.
	if template.NotAfter.After(a.Certificate.NotAfter) {
		template.NotAfter = a.Certificate.NotAfter
	}
	if ip := net.ParseIP(name); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{name}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.Certificate, &a.leaves.key.PublicKey, a.key)
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der, a.Certificate.Raw}, PrivateKey: a.leaves.key, Leaf: parsed}, nil
}
