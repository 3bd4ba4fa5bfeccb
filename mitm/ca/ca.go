// Package ca is the certificate authority (CA) of the recording proxy. It creates a key and a certificate in a
// folder on first use, and issues certificates for the hosts that clients request.
//
//	authority, err := ca.Load(dir)
//	...
//	leaf, err := authority.Leaf("api.example.com")
//
// Constraints can limit the CA to some hosts. A leaf is the certificate of one host; the most recently used ones
// are cached. Package mitm uses this package. The commands install the CA's certificate in trust stores.
//
// Source: mitm/README.md#trust
package ca

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

const (
	// certName and keyName are the names of the CA's files.
	certName = "ca.pem"
	keyName  = "ca-key.pem"

	// validity is the period for which the CA's certificate is valid. It is renewed renewBefore its end.
	validity    = 3 * 365 * 24 * time.Hour
	renewBefore = 7 * 24 * time.Hour

	// clockSkew is how far a client's clock may be behind: certificates are valid from that long before their
	// creation.
	clockSkew = 24 * time.Hour

	pemCertificate = "CERTIFICATE"
	pemKey         = "EC PRIVATE KEY"
)

// An Authority is a local CA that issues certificates for the hosts whose traffic is recorded. Its key was
// created on this machine and never leaves it.
type Authority struct {
	// CertFile is the path of the CA's certificate in PEM.
	CertFile string

	// Certificate is the certificate of the CA.
	Certificate *x509.Certificate

	// key is the private key of the CA.
	key *ecdsa.PrivateKey

	// leaves are the certificates that the CA has issued recently.
	leaves leafCache
}

// Load loads the CA in a folder. On first use, it creates the folder (mode 0700) and the key (mode 0600). It
// creates a new certificate for the same key if the old one expires soon. Several processes may call it at the
// same time: all of them get the same key.
//
// Errors: if others can read the key or write to the folder, or the key is invalid. Source: mitm/README.md#trust
func Load(dir string) (*Authority, error) {
	if err := makeFolder(dir); err != nil {
		return nil, fmt.Errorf("mitm: the folder of the CA cannot be used: %w", err)
	}
	key, err := loadKey(filepath.Join(dir, keyName))
	if err != nil {
		return nil, fmt.Errorf("mitm: the key of the CA cannot be used: %w", err)
	}
	file := filepath.Join(dir, certName)
	cert, err := loadCertificate(file, key)
	if err != nil {
		return nil, fmt.Errorf("mitm: the certificate of the CA cannot be used: %w", err)
	}
	a := &Authority{CertFile: file, Certificate: cert, key: key}
	if err := a.leaves.init(); err != nil {
		return nil, fmt.Errorf("mitm: the key for server certificates cannot be created: %w", err)
	}
	return a, nil
}

// SPKI returns the hash of the CA's public key, by which browsers can be configured to accept it: the SHA-256
// hash of the SubjectPublicKeyInfo, in base64.
//
// Source: RFC 7469, section 2.4
func (a *Authority) SPKI() string {
	sum := sha256.Sum256(a.Certificate.RawSubjectPublicKeyInfo)
	return base64.StdEncoding.EncodeToString(sum[:])
}

// New creates a new CA in dir, replacing an existing one. If hosts (names or IP addresses) are given, the CA's
// certificate has name constraints that limit it to them and their subdomains: programs that trust the CA
// reject its certificates for other hosts.
//
// Errors: ErrHost, and those of Load.
func New(dir string, hosts []string) (*Authority, error) {
	c, err := newConstraints(hosts)
	if err != nil {
		return nil, err
	}
	if err := makeFolder(dir); err != nil {
		return nil, fmt.Errorf("mitm: the folder of the CA cannot be used: %w", err)
	}
	for _, name := range []string{keyName, certName} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("mitm: the folder of the CA cannot be used: %w", err)
		}
	}
	key, err := loadKey(filepath.Join(dir, keyName))
	if err != nil {
		return nil, fmt.Errorf("mitm: the key of the CA cannot be used: %w", err)
	}
	der, err := selfSign(key, c)
	if err != nil {
		return nil, fmt.Errorf("mitm: the certificate of the CA cannot be used: %w", err)
	}
	if err := writeAtomically(filepath.Join(dir, certName), pemCertificate, der, 0o644, true); err != nil {
		return nil, fmt.Errorf("mitm: the certificate of the CA cannot be used: %w", err)
	}
	return Load(dir)
}

// makeFolder creates the folder for the CA's files. An existing folder must not be writable by other
// users.
func makeFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	// Windows has access lists instead of modes.
	if runtime.GOOS == "windows" {
		return nil
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return fmt.Errorf("other users can replace the CA in the folder %s (mode %04o): run 'chmod go-w' on the folder, and 'unwire ca new' if somebody may have replaced the CA", dir, mode)
	}
	return nil
}

// loadKey reads the CA's private key, or creates it on first use.
func loadKey(file string) (*ecdsa.PrivateKey, error) {
	key, err := readKey(file)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	if err := writeAtomically(file, pemKey, der, 0o600, false); err != nil {
		return nil, err
	}
	// Another process may have created the key file first, so return the key that the file has now.
	return readKey(file)
}

// readKey reads the CA's private key, and checks that other users cannot read it.
func readKey(file string) (*ecdsa.PrivateKey, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	// Windows has access lists instead of modes.
	if mode := info.Mode().Perm(); mode&0o077 != 0 && runtime.GOOS != "windows" {
		return nil, fmt.Errorf("other users can read the key in the file %s (mode %04o): run 'chmod 600' on the file, or, if somebody may have read the key, delete the file to get a new CA", file, mode)
	}
	der, err := readPEM(file, pemKey)
	if err != nil {
		return nil, err
	}
	key, err := x509.ParseECPrivateKey(der)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: delete the file to get a new CA", file, err)
	}
	return key, nil
}

// loadCertificate reads the CA's certificate. It creates a new one if there is none for this key, or if it
// expires soon.
func loadCertificate(file string, key *ecdsa.PrivateKey) (*x509.Certificate, error) {
	cert, err := readCertificate(file)
	if err == nil && isUsable(cert, key) {
		return cert, nil
	}
	var c constraints
	if err == nil && matchesKey(cert, key) {
		// A renewed certificate keeps the constraints.
		c = constraintsOf(cert)
	}
	der, err := selfSign(key, c)
	if err != nil {
		return nil, err
	}
	// If several processes write, the last one wins. The certificates differ only in serial number and dates, so
	// all leaves verify with any of them.
	if err := writeAtomically(file, pemCertificate, der, 0o644, true); err != nil {
		return nil, err
	}
	return readCertificate(file)
}

// readCertificate reads the CA's certificate from a PEM file.
func readCertificate(file string) (*x509.Certificate, error) {
	der, err := readPEM(file, pemCertificate)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// isUsable reports whether the CA's certificate belongs to the key and does not expire soon.
func isUsable(cert *x509.Certificate, key *ecdsa.PrivateKey) bool {
	return matchesKey(cert, key) && cert.IsCA && time.Until(cert.NotAfter) > renewBefore
}

// matchesKey reports whether a certificate contains the public key of key.
func matchesKey(cert *x509.Certificate, key *ecdsa.PrivateKey) bool {
	pub, ok := cert.PublicKey.(*ecdsa.PublicKey)
	return ok && pub.Equal(&key.PublicKey)
}

// selfSign creates the self-signed certificate of the CA, limited by the constraints c, and returns it in DER.
func selfSign(key *ecdsa.PrivateKey, c constraints) ([]byte, error) {
	serial, err := serialNumber()
	if err != nil {
		return nil, err
	}
	pub, err := key.PublicKey.Bytes()
	if err != nil {
		return nil, err
	}
	// The name contains a part of the key. This distinguishes the CAs of two machines, and stays when the
	// certificate is renewed.
	id := hex.EncodeToString(pub[1:5])
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{Organization: []string{"unwire"}, CommonName: "unwire local CA " + id},
		NotBefore:             time.Now().Add(-clockSkew),
		NotAfter:              time.Now().Add(validity),
		IsCA:                  true,
		MaxPathLenZero:        true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		// The CA may issue certificates only for servers, not for mail or programs.
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	c.apply(template)
	return x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
}

// serialNumber returns a random serial number for a certificate.
func serialNumber() (*big.Int, error) {
	return rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
}

// readPEM returns the contents (DER) of the PEM block of a kind, such as "CERTIFICATE", in a file.
func readPEM(file, kind string) ([]byte, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(data)
	if block == nil || block.Type != kind {
		return nil, fmt.Errorf("%s contains no PEM block of the type %s", file, kind)
	}
	return block.Bytes, nil
}

// writeAtomically creates a file with one PEM block in one step, so that nobody reads an incomplete file. If
// replace is false, an existing file is kept.
func writeAtomically(file, kind string, der []byte, mode fs.FileMode, replace bool) error {
	tmp, err := os.CreateTemp(filepath.Dir(file), ".new-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	var buf bytes.Buffer
	err = errors.Join(pem.Encode(&buf, &pem.Block{Type: kind, Bytes: der}), writeSync(tmp, buf.Bytes()), os.Chmod(tmp.Name(), mode))
	if err != nil {
		return err
	}
	if replace {
		return os.Rename(tmp.Name(), file)
	}
	if err := os.Link(tmp.Name(), file); err != nil && !errors.Is(err, fs.ErrExist) {
		// The file system has no hard links.
		return os.Rename(tmp.Name(), file)
	}
	return nil
}

// writeSync writes p to f, flushes it to disk, and closes f.
func writeSync(f *os.File, p []byte) error {
	_, err := f.Write(p)
	return errors.Join(err, f.Sync(), f.Close())
}
