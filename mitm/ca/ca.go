// Package ca is the certificate authority of the recording proxy. It keeps its key
// and its certificate in a folder, both made on first use, and makes certificates
// for the hosts that clients ask for.
//
//	authority, err := ca.Load(dir)
//	...
//	leaf, err := authority.Leaf("api.example.com")
//
// Constraints limit the CA to some hosts. A leaf is the certificate of one host; the
// most recently used are cached. The package knows neither proxies nor captures;
// putting the CA into trust stores is the command's.
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
	certName = "ca.pem"
	keyName  = "ca-key.pem"

	validity    = 3 * 365 * 24 * time.Hour
	renewBefore = 7 * 24 * time.Hour

	// clockSkew is how far a client's clock may be behind.
	clockSkew = 24 * time.Hour

	pemCertificate = "CERTIFICATE"
	pemKey         = "EC PRIVATE KEY"
)

// An Authority is the local certificate authority that vouches for the hosts whose
// traffic is recorded. Its key was made on this machine and stays there.
type Authority struct {
	// CertFile is the path of the CA's certificate, in PEM.
	CertFile string

	// Certificate is the CA's.
	Certificate *x509.Certificate

	key    *ecdsa.PrivateKey
	leaves leafCache
}

// Load loads the CA of a folder, making it on first use (folder 0700, key
// 0600) and making a new certificate for its key when the old one ends. Several
// processes may do so at once: all of them get the same key.
//
// Errors: a key that others can read is refused, as is one that does not parse, and a
// folder that others can write to.
// Source: mitm/README.md#trust
func Load(dir string) (*Authority, error) {
	if err := makeFolder(dir); err != nil {
		return nil, fmt.Errorf("mitm: CA folder: %w", err)
	}
	key, err := loadKey(filepath.Join(dir, keyName))
	if err != nil {
		return nil, fmt.Errorf("mitm: CA key: %w", err)
	}
	file := filepath.Join(dir, certName)
	cert, err := loadCertificate(file, key)
	if err != nil {
		return nil, fmt.Errorf("mitm: CA certificate: %w", err)
	}
	a := &Authority{CertFile: file, Certificate: cert, key: key}
	if err := a.leaves.init(); err != nil {
		return nil, fmt.Errorf("mitm: leaf key: %w", err)
	}
	return a, nil
}

// SPKI is the hash of the CA's public key by which browsers are told to accept it: SHA-256
// of its SubjectPublicKeyInfo, in base64.
//
// Source: RFC 7469, section 2.4
func (a *Authority) SPKI() string {
	sum := sha256.Sum256(a.Certificate.RawSubjectPublicKeyInfo)
	return base64.StdEncoding.EncodeToString(sum[:])
}

// New makes a new CA in dir, in the place of one that is there. With hosts, names or IP
// addresses, it vouches for these and the names below them alone: programs that trust
// it accept no certificate for others.
//
// Errors: ErrHost, and those of Load.
func New(dir string, hosts []string) (*Authority, error) {
	c, err := newConstraints(hosts)
	if err != nil {
		return nil, err
	}
	if err := makeFolder(dir); err != nil {
		return nil, fmt.Errorf("mitm: CA folder: %w", err)
	}
	for _, name := range []string{keyName, certName} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("mitm: CA folder: %w", err)
		}
	}
	key, err := loadKey(filepath.Join(dir, keyName))
	if err != nil {
		return nil, fmt.Errorf("mitm: CA key: %w", err)
	}
	der, err := selfSign(key, c)
	if err != nil {
		return nil, fmt.Errorf("mitm: CA certificate: %w", err)
	}
	if err := writeAtomically(filepath.Join(dir, certName), pemCertificate, der, 0o644, true); err != nil {
		return nil, fmt.Errorf("mitm: CA certificate: %w", err)
	}
	return Load(dir)
}

// makeFolder makes the CA's folder, or checks that nobody else can put a CA there.
func makeFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if runtime.GOOS == "windows" { // keeps access lists instead
		return nil
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return fmt.Errorf("%s: mode %04o lets others replace the CA: run 'chmod go-w' on it, and 'unwire ca new' if somebody may have", dir, mode)
	}
	return nil
}

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
	return readKey(file) // another process may have been first
}

func readKey(file string) (*ecdsa.PrivateKey, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	// Windows keeps access lists instead, which the mode does not show.
	if mode := info.Mode().Perm(); mode&0o077 != 0 && runtime.GOOS != "windows" {
		return nil, fmt.Errorf("%s: mode %04o lets others use it: run 'chmod 600' on it if nobody has, or delete it to get a new CA", file, mode)
	}
	der, err := readPEM(file, pemKey)
	if err != nil {
		return nil, err
	}
	key, err := x509.ParseECPrivateKey(der)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: delete it to get a new CA", file, err)
	}
	return key, nil
}

// loadCertificate reads the certificate, or makes it if there is none for this key or
// it is about to end.
func loadCertificate(file string, key *ecdsa.PrivateKey) (*x509.Certificate, error) {
	cert, err := readCertificate(file)
	if err == nil && isUsable(cert, key) {
		return cert, nil
	}
	var c constraints
	if err == nil && isOf(cert, key) {
		c = constraintsOf(cert) // a renewed certificate vouches for no more
	}
	der, err := selfSign(key, c)
	if err != nil {
		return nil, err
	}
	// Whichever process writes last wins: the certificates differ in serial
	// number and dates only, so what the others sign verifies with it too.
	if err := writeAtomically(file, pemCertificate, der, 0o644, true); err != nil {
		return nil, err
	}
	return readCertificate(file)
}

func readCertificate(file string) (*x509.Certificate, error) {
	der, err := readPEM(file, pemCertificate)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

func isUsable(cert *x509.Certificate, key *ecdsa.PrivateKey) bool {
	return isOf(cert, key) && cert.IsCA && time.Until(cert.NotAfter) > renewBefore
}

// isOf reports whether a certificate is for a key.
func isOf(cert *x509.Certificate, key *ecdsa.PrivateKey) bool {
	pub, ok := cert.PublicKey.(*ecdsa.PublicKey)
	return ok && pub.Equal(&key.PublicKey)
}

func selfSign(key *ecdsa.PrivateKey, c constraints) ([]byte, error) {
	serial, err := serialNumber()
	if err != nil {
		return nil, err
	}
	pub, err := key.PublicKey.Bytes()
	if err != nil {
		return nil, err
	}
	// The name holds a bit of the key: two machines' CAs in one trust store
	// are told apart by it, and a renewed certificate keeps it.
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
		// What it signs vouches for servers, not for mail or programs.
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	c.apply(template)
	return x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
}

func serialNumber() (*big.Int, error) {
	return rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
}

func readPEM(file, kind string) ([]byte, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(data)
	if block == nil || block.Type != kind {
		return nil, fmt.Errorf("%s: no PEM block of type %s", file, kind)
	}
	return block.Bytes, nil
}

// writeAtomically puts a whole file in place at once, so that nobody reads half of it.
// Without replace, a file that is there already stays.
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
		return os.Rename(tmp.Name(), file) // a file system without hard links
	}
	return nil
}

func writeSync(f *os.File, p []byte) error {
	_, err := f.Write(p)
	return errors.Join(err, f.Sync(), f.Close())
}
