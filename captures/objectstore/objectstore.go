// Package objectstore reads and writes objects in a bucket of an S3-compatible store, or files of a folder, by the
// same interface.
//
//	store, key, err := objectstore.Open("s3://bucket/prefix", objectstore.Options{Transport: transport})
//	err = store.Put(ctx, key+"/a.uwc", file, size)
//	list, err := store.List(ctx, key)
//
// A URL is s3://BUCKET/KEY, gs://BUCKET/KEY (Google Cloud Storage through its S3-compatible interface), file:///PATH,
// or a path without a scheme. `unwire capture --upload` writes with it, and the commands below `unwire schema` and
// unwire-pipeline read with it.
//
// The package sends only through the transport that it is given, so that the caller decides which hosts it may reach.
//
// Source: captures/README.md#upload
package objectstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// ErrIntegrity is wrapped by errors of transfers whose received content differs from the sent content.
var ErrIntegrity = errors.New("the stored object differs from the uploaded data")

// An Object describes an object in a bucket, or a file.
type Object struct {
	// Key is the name of the object within its bucket or, for files, its path with slashes.
	Key string
	// Size is the size of the object in bytes.
	Size int64
}

// A Store reads and writes objects in a bucket, or files of this machine.
type Store interface {
	// List returns the objects whose keys begin with prefix, sorted by key.
	List(ctx context.Context, prefix string) ([]Object, error)

	// Open returns the content of an object. The error wraps fs.ErrNotExist if there is none.
	Open(ctx context.Context, key string) (io.ReadCloser, error)

	// Stat returns the size of an object. The error wraps fs.ErrNotExist if there is none.
	Stat(ctx context.Context, key string) (Object, error)

	// Put writes an object atomically, replacing an existing one. If an earlier upload of the same
	// content was interrupted, Put continues it.
	//
	// Errors: ErrIntegrity if the checksum reported by the store differs.
	Put(ctx context.Context, key string, r io.ReaderAt, size int64) error

	// Remove removes an object. It is no error if there is none.
	Remove(ctx context.Context, key string) error

	// URL returns the URL of an object.
	URL(key string) string
}

// Options configure a store. The zero value is for files only.
type Options struct {
	// Endpoint is the URL of the S3 service. Default: AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL, or else that of Amazon,
	// and for gs:// that of Google.
	Endpoint string
	// Region is the region of the bucket. Default: AWS_REGION or AWS_DEFAULT_REGION, or else us-east-1.
	Region string
	// Transport sends all requests, also those for credentials. It is required for buckets.
	Transport http.RoundTripper
	// Encryption asks the store to encrypt objects: "AES256", "aws:kms", or "aws:kms:KEY". Default: the bucket's setting.
	Encryption string
	// PartSize is the size of the parts of large objects, in bytes. Default: 16 MiB; the minimum is 5 MiB.
	PartSize int64
	// Getenv returns environment variables. Default: os.Getenv.
	Getenv func(string) string
}

// IsURL reports whether name is the URL of an object (s3://…, gs://…) or file (file://…), rather than a plain
// path.
func IsURL(name string) bool {
	scheme, _, found := strings.Cut(name, "://")
	return found && slices.Contains([]string{"s3", "gs", "file"}, scheme)
}

// Open returns the Store for a URL such as s3://bucket/key, and the key of the object in it. It sends no
// request.
//
// Errors: if the URL or an option is invalid.
func Open(rawURL string, o Options) (Store, string, error) {
	scheme, rest, found := strings.Cut(rawURL, "://")
	if !found {
		return files{}, filepath.ToSlash(rawURL), nil
	}
	switch scheme {
	case "file":
		if !strings.HasPrefix(rest, "/") {
			return nil, "", fmt.Errorf("%s: a file URL must have an absolute path, as in file:///PATH", rawURL)
		}
		return files{url: true}, path.Clean(rest), nil
	case "s3", "gs":
		bucket, key, _ := strings.Cut(rest, "/")
		if !bucketName().MatchString(bucket) {
			return nil, "", fmt.Errorf("%s: %q is not the name of a bucket, which has 3 to 63 lower-case letters, digits, dots and hyphens: the URL must be %s://BUCKET/PREFIX", rawURL, bucket, scheme)
		}
		s, err := newBucket(scheme, bucket, o)
		return s, key, err
	}
	return nil, "", fmt.Errorf("%s: the scheme is unknown: use s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or file:///PATH", rawURL)
}

// bucketName matches the names of buckets.
var bucketName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]$`) })

// Endpoint returns the URL of the service that hosts an object's URL, or nil for a local file. The
// caller decides whether the service may be contacted.
//
// Errors: if the endpoint is not an http or https URL.
func Endpoint(rawURL string, o Options) (*url.URL, error) {
	scheme, _, _ := strings.Cut(rawURL, "://")
	if scheme != "s3" && scheme != "gs" {
		return nil, nil
	}
	getenv := o.Getenv
	if getenv == nil {
		getenv = os.Getenv
	}
	text := o.Endpoint
	if text == "" && scheme == "gs" {
		text = "https://storage.googleapis.com"
	}
	text = cmp.Or(text, getenv("AWS_ENDPOINT_URL_S3"), getenv("AWS_ENDPOINT_URL"), "https://s3."+region(o, getenv)+".amazonaws.com")
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") != "" || u.User != nil {
		return nil, fmt.Errorf("the endpoint %q is not a URL such as https://s3.example.com:9000", text)
	}
	return u, nil
}

// region returns the region of the bucket from the options or the environment.
func region(o Options, getenv func(string) string) string {
	return cmp.Or(o.Region, getenv("AWS_REGION"), getenv("AWS_DEFAULT_REGION"), "us-east-1")
}

// Match returns the objects whose keys match pattern, sorted by key. In patterns, * and ? match within a
// folder, and ** matches across folders. A pattern that ends with a slash matches all objects of the folder.
func Match(ctx context.Context, s Store, pattern string) ([]Object, error) {
	literal := pattern
	if i := strings.IndexAny(pattern, "*?"); i >= 0 {
		literal = pattern[:i]
	} else if !strings.HasSuffix(pattern, "/") {
		o, err := s.Stat(ctx, pattern)
		return []Object{o}, err
	}
	re, err := compile(pattern)
	if err != nil {
		return nil, err
	}
	all, err := s.List(ctx, literal)
	return slices.DeleteFunc(all, func(o Object) bool { return !re.MatchString(o.Key) }), err
}

// compile converts a pattern for object keys (see Match) to a regular expression.
func compile(pattern string) (*regexp.Regexp, error) {
	var b strings.Builder
	b.WriteString(`(?s)^`)

	// Translate byte by byte. The pattern ** matches across folders, as in shells with globstar, while
	// * and ? stay within one.
	for i := 0; i < len(pattern); i++ {
		switch {
		case strings.HasPrefix(pattern[i:], "**/"):
			b.WriteString(`(?:.*/)?`)
			i += 2
		case strings.HasPrefix(pattern[i:], "**"):
			b.WriteString(`.*`)
			i++
		case pattern[i] == '*':
			b.WriteString(`[^/]*`)
		case pattern[i] == '?':
			b.WriteString(`[^/]`)
		default:
			b.WriteString(regexp.QuoteMeta(pattern[i : i+1]))
		}
	}

	// A pattern that names a folder selects everything in it.
	if strings.HasSuffix(pattern, "/") {
		b.WriteString(`.*`)
	}
	b.WriteString(`$`)
	re, err := regexp.Compile(b.String())
	if err != nil {
		return nil, fmt.Errorf("the pattern %q is malformed: %w", pattern, err)
	}
	return re, nil
}
