package pipeline

import (
	"bytes"
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"

	"unwire/captures/objectstore"
	"unwire/captures/profile"
	"unwire/proto"
	"unwire/replay/outbound"
)

// Access describes how workers connect to object stores. It is sent to the workers as part of the
// pipeline and therefore contains no secrets: each worker finds its own credentials.
type Access struct {
	// Endpoint is the URL of the S3 service; "" for the default of the environment or of the provider.
	Endpoint string

	// Region is the region of the bucket; "" for the default of the environment.
	Region string

	// Encryption asks the store to encrypt objects: "AES256", "aws:kms", or "aws:kms:KEY"; "" for the bucket's
	// setting.
	Encryption string
	// Live allows connections to the hosts in AllowHosts. Without it, only this machine may be contacted.
	Live bool
	// AllowHosts are the names of the hosts that may be contacted if Live is set.
	AllowHosts []string
	// CA is the path, on each worker, of a PEM file with additional certificate authorities for HTTPS; "" for
	// none.
	CA string
}

// Check returns an error if the options do not allow connecting to the host of an object store, given a URL.
func (a Access) Check(url string) error {
	endpoint, err := objectstore.Endpoint(url, a.options(nil))
	if err != nil || endpoint == nil {
		return err
	}
	return outbound.CheckTarget(endpoint, a.Live, a.AllowHosts)
}

// options returns the options for opening object stores.
func (a Access) options(transport http.RoundTripper) objectstore.Options {
	return objectstore.Options{Endpoint: a.Endpoint, Region: a.Region, Encryption: a.Encryption, Transport: transport}
}

// Open opens the object store that a URL or path refers to, and returns the key of the object in it.
func (a Access) Open(url string) (objectstore.Store, string, error) {
	if err := a.Check(url); err != nil {
		return nil, "", err
	}
	policy := outbound.Policy{Live: a.Live, AllowHosts: a.AllowHosts}
	if a.CA != "" {
		pem, err := os.ReadFile(a.CA)
		if err != nil {
			return nil, "", err
		}
		if policy.Roots, err = x509.SystemCertPool(); err != nil {
			policy.Roots = x509.NewCertPool()
		}
		if !policy.Roots.AppendCertsFromPEM(pem) {
			return nil, "", fmt.Errorf("%s contains no certificate", a.CA)
		}
	}
	return objectstore.Open(url, a.options(outbound.New("https", "1.1", false, false, policy)))
}

// maxObject is the maximum size in bytes of an object that is read into memory.
const maxObject = 1 << 30

// readObject reads a whole object into memory.
func readObject(ctx context.Context, s objectstore.Store, key string) ([]byte, error) {
	r, err := s.Open(ctx, key)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, maxObject+1))
	if err == nil && len(data) > maxObject {
		err = fmt.Errorf("the object %s has more than %d bytes", s.URL(key), maxObject)
	}
	return data, err
}

// writeObject writes a whole object from memory.
func writeObject(ctx context.Context, s objectstore.Store, key string, data []byte) error {
	return s.Put(ctx, key, bytes.NewReader(data), int64(len(data)))
}

// subject returns the profile of the recorded client, which `unwire schema infer` uses by default, too.
func subject() *profile.Profile { return proto.Profile() }
