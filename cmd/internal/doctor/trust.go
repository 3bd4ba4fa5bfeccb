package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

const (
	certFile = "ca.pem"
	keyFile  = "ca-key.pem"
	soon     = 30 * 24 * time.Hour
)

// ca checks unwire's CA: the permissions of its key, and the validity of its certificate. It does not
// create a CA.
func (m Machine) ca(context.Context) []check {
	const name = "CA"
	key := filepath.Join(m.CADir, keyFile)
	info, err := os.Stat(key)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ok(name, "no CA yet; the first capture creates it in "+m.CADir)
	case err != nil:
		return failed(name, err.Error(), "make the folder readable, or set UNWIRE_CONFIG to another one")
	case info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows":
		return failed(name, fmt.Sprintf("other users can read the CA's key %s (mode %04o)", key, info.Mode().Perm()),
			"run 'chmod 600' on the key; if somebody may have copied it, delete it, and unwire creates a new CA")
	}

	// A missing or invalid certificate is replaced by the next capture, so it is only a warning.
	cert, err := m.certificate()
	if err != nil {
		return warn(name, err.Error(), "the next capture creates a new certificate for the key; install it again where the old one is installed")
	}
	if _, err := tls.LoadX509KeyPair(filepath.Join(m.CADir, certFile), key); err != nil {
		return failed(name, "the certificate and the key do not match: "+err.Error(), "delete "+m.CADir+": the next capture creates a new CA")
	}
	until := cert.NotAfter.Format("2006-01-02")
	switch now := m.Now(); {
	case now.Before(cert.NotBefore):
		return failed(name, "the certificate is not valid before "+cert.NotBefore.Format("2006-01-02"), "set the clock, which is behind")
	case now.After(cert.NotAfter):
		return warn(name, "the certificate expired on "+until, "the next capture creates a new certificate; install it again where the old one is installed")
	case cert.NotAfter.Sub(now) < soon:
		return warn(name, "the certificate expires on "+until, "unwire replaces the certificate in its last week; then install it again where the old one is installed")
	}
	return ok(name, filepath.Join(m.CADir, certFile)+", valid until "+until)
}

// certificate reads the CA certificate.
func (m Machine) certificate() (*x509.Certificate, error) {
	data, err := os.ReadFile(filepath.Join(m.CADir, certFile))
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, fmt.Errorf("%s contains no certificate", filepath.Join(m.CADir, certFile))
	}
	return x509.ParseCertificate(block.Bytes)
}

// systemTrust checks whether the operating system trusts the CA. Either is acceptable.
func (m Machine) systemTrust(context.Context) []check {
	const name = "system store"
	cert, err := m.certificate()
	if err != nil {
		return ok(name, "does not trust the CA, which does not exist yet")
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		return warn(name, "cannot be read: "+err.Error(), "install the package ca-certificates, which is needed to verify servers")
	}
	if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: m.Now(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err == nil {
		return []check{{name, statusOK, "trusts the CA, so every program on this machine does", "remove the CA with 'unwire ca remove' when you no longer need it"}}
	}
	return ok(name, "does not trust the CA (not needed: 'unwire capture' sets CA variables for the command that it runs)")
}

// caVariables checks whether the user has set CA variables such as SSL_CERT_FILE, which capture replaces
// for the command that it runs.
func (m Machine) caVariables(context.Context) []check {
	const name = "CA variables"
	var all []check
	for _, v := range []string{"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"} {
		path := m.Getenv(v)
		if path == "" {
			continue
		}
		if _, err := os.Stat(path); err != nil {
			all = append(all, warn(name, fmt.Sprintf("%s names the file %s, which cannot be read", v, path), "unset the variable: programs that use it cannot verify any server")...)
			continue
		}
		all = append(all, warn(name, fmt.Sprintf("%s is set to %s", v, path),
			"capture sets the variable to a file with these CAs and unwire's CA. If you start a client yourself, append the certificate of 'unwire ca export' to this file")...)
	}
	if len(all) == 0 {
		return ok(name, "none set")
	}
	return all
}
