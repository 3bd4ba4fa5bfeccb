// Package certificate creates the throwaway certificate of the stand-in.
package certificate

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"time"
)

// certificateLife is how long certificates are valid. It is short, so that nobody relies on them.
const certificateLife = 7 * 24 * time.Hour

// Make creates a CA and a server certificate for loopback addresses and the given hosts. It returns the
// CA's certificate as PEM; the CA's key is discarded.
func Make(hosts []string) (ca []byte, leaf tls.Certificate, err error) {
	now := time.Now()
	rootKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, leaf, err
	}
	root := &x509.Certificate{
		SerialNumber:          serial(),
		Subject:               pkix.Name{CommonName: "unwire stand-in (throwaway)"},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.Add(certificateLife),
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
		KeyUsage:              x509.KeyUsageCertSign,
	}

	// The authority signs one certificate; its key is never stored.
	rootDER, err := x509.CreateCertificate(rand.Reader, root, root, rootKey.Public(), rootKey)
	if err != nil {
		return nil, leaf, err
	}
	leafKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, leaf, err
	}
	template := &x509.Certificate{
		SerialNumber: serial(),
		Subject:      pkix.Name{CommonName: "localhost"},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(certificateLife),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:     []string{"localhost"},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}

	// Hosts may be names or addresses.
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, root, leafKey.Public(), rootKey)
	if err != nil {
		return nil, leaf, err
	}
	ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: rootDER})
	return ca, tls.Certificate{Certificate: [][]byte{der, rootDER}, PrivateKey: leafKey}, nil
}

// serial returns a random serial number for a certificate.
func serial() *big.Int {
	var b [16]byte
	rand.Read(b[:]) // never fails, by its documentation
	b[0] &= 0x7f
	return new(big.Int).SetBytes(b[:])
}
