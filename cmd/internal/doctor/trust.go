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

// ca looks at the local CA without making one.
func (m Machine) ca(context.Context) []check {
	const name = "CA"
	key := filepath.Join(m.CADir, keyFile)
	info, err := os.Stat(key)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ok(name, "none yet: the first capture makes it in "+m.CADir)
	case err != nil:
		return failed(name, err.Error(), "make the folder readable, or set UNWIRE_CONFIG to another one")
	case info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows":
		return failed(name, fmt.Sprintf("others can read its key %s (mode %04o)", key, info.Mode().Perm()),
			"chmod 600 it if nobody has used it; else delete it, and a new CA is made")
	}
	cert, err := m.certificate()
	if err != nil {
		return warn(name, err.Error(), "the next capture makes a new certificate for the key; what trusts the old one has to be told")
	}
	if _, err := tls.LoadX509KeyPair(filepath.Join(m.CADir, certFile), key); err != nil {
		return failed(name, "the certificate and the key do not work together: "+err.Error(), "delete "+m.CADir+": the next capture makes a new CA")
	}
	until := cert.NotAfter.Format("2006-01-02")
	switch now := m.Now(); {
	case now.Before(cert.NotBefore):
		return failed(name, "it is not valid before "+cert.NotBefore.Format("2006-01-02"), "the clock is behind: set it")
	case now.After(cert.NotAfter):
		return warn(name, "it ended on "+until, "the next capture makes a new certificate; what trusts the old one has to be told")
	case cert.NotAfter.Sub(now) < soon:
		return warn(name, "it ends on "+until, "it is made anew in its last week; what trusts the old one has to be told then")
	}
	return ok(name, filepath.Join(m.CADir, certFile)+", valid until "+until)
}

func (m Machine) certificate() (*x509.Certificate, error) {
	data, err := os.ReadFile(filepath.Join(m.CADir, certFile))
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, fmt.Errorf("%s holds no certificate", filepath.Join(m.CADir, certFile))
	}
	return x509.ParseCertificate(block.Bytes)
}

// systemTrust tells whether the system trusts the CA; either is fine.
func (m Machine) systemTrust(context.Context) []check {
	const name = "system store"
	cert, err := m.certificate()
	if err != nil {
		return ok(name, "does not know the CA, which is not made yet")
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		return warn(name, "cannot be read: "+err.Error(), "install the package ca-certificates: servers are verified by it")
	}
	if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: m.Now(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err == nil {
		return []check{{name, statusOK, "trusts the CA: so does every program of this machine", "'unwire ca remove' undoes that when you need it no more"}}
	}
	return ok(name, "does not trust the CA; commands run by 'unwire capture' are told to")
}

// caVariables are set by people and by capture; the ones of people are replaced.
func (m Machine) caVariables(context.Context) []check {
	const name = "CA variables"
	var all []check
	for _, v := range []string{"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"} {
		path := m.Getenv(v)
		if path == "" {
			continue
		}
		if _, err := os.Stat(path); err != nil {
			all = append(all, warn(name, fmt.Sprintf("%s names %s, which cannot be read", v, path), "unset it: programs may trust nobody")...)
			continue
		}
		all = append(all, warn(name, fmt.Sprintf("%s is set to %s", v, path),
			"a command run by capture gets a file with these CAs and unwire's; one that you start yourself needs 'unwire ca' added to it")...)
	}
	if len(all) == 0 {
		return ok(name, "none is set")
	}
	return all
}
