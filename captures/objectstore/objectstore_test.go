package objectstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"unwire/captures/internal/s3test"
)

// options are those of a client of a service.
func options(s *s3test.Service) Options {
	return Options{Endpoint: s.URL, Transport: &http.Transport{}, PartSize: minPart}
}

func content(n int) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(1, uint64(n)))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func put(ctx context.Context, s Store, key string, data []byte) error {
	return s.Put(ctx, key, bytes.NewReader(data), int64(len(data)))
}

func read(t *testing.T, s Store, key string) []byte {
	t.Helper()
	r, err := s.Open(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestStores: a folder and a bucket do the same.
func TestStores(t *testing.T) {
	s3 := s3test.New(t)
	dir := t.TempDir()
	for _, url := range []string{"s3://bucket/x", "gs://bucket/x", "file://" + dir + "/x", dir + "/y"} {
		t.Run(url[:5], func(t *testing.T) {
			s, root, err := Open(url, options(s3))
			if err != nil {
				t.Fatal(err)
			}
			small, large := content(1000), content(2*minPart+77)
			for key, data := range map[string][]byte{"/a/1.pb": small, "/a/b/2.pb": nil, "/ab.pb": large, "/c.txt": small} {
				if err := put(t.Context(), s, root+key, data); err != nil {
					t.Fatal(err)
				}
				if got := read(t, s, root+key); !bytes.Equal(got, data) {
					t.Errorf("%s: %d bytes, want %d", key, len(got), len(data))
				}
				if o, err := s.Stat(t.Context(), root+key); err != nil || o.Size != int64(len(data)) || o.Key != root+key {
					t.Errorf("%+v, %v", o, err)
				}
			}
			if err := put(t.Context(), s, root+"/c.txt", large); err != nil || !bytes.Equal(read(t, s, root+"/c.txt"), large) {
				t.Errorf("not replaced: %v", err)
			}

			for pattern, want := range map[string][]string{
				"/**":        {"/a/1.pb", "/a/b/2.pb", "/ab.pb", "/c.txt"},
				"/*.pb":      {"/ab.pb"},
				"/a*":        {"/ab.pb"},
				"/a/":        {"/a/1.pb", "/a/b/2.pb"},
				"/**/*.pb":   {"/a/1.pb", "/a/b/2.pb", "/ab.pb"},
				"/a/?.pb":    {"/a/1.pb"},
				"/ab.pb":     {"/ab.pb"},
				"/missing/*": nil,
			} {
				list, err := Match(t.Context(), s, root+pattern)
				if err != nil {
					t.Errorf("%s: %v", pattern, err)
				}
				var got []string
				for _, o := range list {
					got = append(got, strings.TrimPrefix(o.Key, root))
				}
				if d := cmp.Diff(want, got); d != "" {
					t.Errorf("%s: %s", pattern, d)
				}
			}

			if err := s.Remove(t.Context(), root+"/c.txt"); err != nil {
				t.Error(err)
			}
			if err := s.Remove(t.Context(), root+"/c.txt"); err != nil {
				t.Errorf("what is not there: %v", err)
			}
			if _, err := s.Stat(t.Context(), root+"/c.txt"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%v", err)
			}
			if _, err := s.Open(t.Context(), root+"/c.txt"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%v", err)
			}
			if got := s.URL(root + "/ab.pb"); got != url+"/ab.pb" {
				t.Errorf("%s", got)
			}
		})
	}
}

// TestCutUpload: a large upload that was cut continues where it was, and only with the parts that have the right
// content.
func TestCutUpload(t *testing.T) {
	s3 := s3test.New(t)
	s, _, err := Open("s3://bucket", options(s3))
	if err != nil {
		t.Fatal(err)
	}
	data := content(3*minPart + 5)
	cut := s3test.Fault(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("partNumber") != "3" {
			return false
		}
		// Half of the part arrives, and the connection breaks.
		_, _ = io.CopyN(io.Discard, r.Body, minPart/2)
		panic(http.ErrAbortHandler)
	})
	s3.SetFault(cut)
	if err := put(t.Context(), s, "k", data); err == nil {
		t.Fatal("the cut upload has no error")
	}
	if _, err := s.Stat(t.Context(), "k"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a half object: %v", err)
	}
	s3.SetFault(nil)
	s3.Count("")

	changed := bytes.Clone(data)
	changed[minPart+1]++ // in the second part
	if err := put(t.Context(), s, "k", changed); err != nil {
		t.Fatal(err)
	}
	if n := s3.Count("partNumber="); n != 3 {
		t.Errorf("%d parts were sent, want 3: the first is there", n)
	}
	if !bytes.Equal(read(t, s, "k"), changed) {
		t.Error("the object has another content")
	}
}

// TestFaults: what the service gets wrong is an error, and the next attempt works.
func TestFaults(t *testing.T) {
	s3 := s3test.New(t)
	s, _, err := Open("s3://bucket", options(s3))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		fault s3test.Fault
		want  error
		text  string
	}{
		"500": {func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(500); return true }, nil, "500"},
		"bad digest": {func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(400)
			fmt.Fprint(w, `<Error><Code>BadDigest</Code><Message>m</Message></Error>`)
			return true
		}, ErrIntegrity, "differs from the uploaded data"},
		"another MD5": {func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("ETag", `"00000000000000000000000000000000"`)
			return true
		}, ErrIntegrity, "the object store reports the MD5 0000"},
		"refused": {func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(403)
			fmt.Fprint(w, `<Error><Code>AccessDenied</Code><Message>m</Message></Error>`)
			return true
		}, nil, "refuses the credentials"},
		"no bucket": {func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(404)
			fmt.Fprint(w, `<Error><Code>NoSuchBucket</Code><Message>m</Message></Error>`)
			return true
		}, nil, "the bucket does not exist"},
	} {
		s3.SetFault(c.fault)
		err := put(t.Context(), s, "k", []byte("content"))
		if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) || !strings.HasPrefix(err.Error(), "s3://bucket/k: ") {
			t.Errorf("%s: %v", name, err)
		}
		s3.SetFault(nil)
		if err := put(t.Context(), s, "k", []byte("content")); err != nil {
			t.Errorf("after %s: %v", name, err)
		}
	}
}

// TestEncryption asks the service for it.
func TestEncryption(t *testing.T) {
	s3 := s3test.New(t)
	var header atomic.Value
	seen := s3test.Fault(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut {
			header.Store(r.Header.Get("X-Amz-Server-Side-Encryption") + " " + r.Header.Get("X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id"))
		}
		return false
	})
	s3.SetFault(seen)
	for text, want := range map[string]string{"": " ", "AES256": "AES256 ", "aws:kms:key": "aws:kms key"} {
		o := options(s3)
		o.Encryption = text
		s, _, err := Open("s3://bucket", o)
		if err != nil {
			t.Fatal(err)
		}
		if err := put(t.Context(), s, "k", []byte("content")); err != nil || header.Load() != want {
			t.Errorf("%s: %q, %v", text, header.Load(), err)
		}
	}
}

func TestEndpoint(t *testing.T) {
	env := map[string]string{}
	o := Options{Getenv: func(name string) string { return env[name] }, Transport: http.DefaultTransport}
	for _, c := range []struct{ url, variable, value, want string }{
		{"s3://bucket/x", "", "", "https://s3.us-east-1.amazonaws.com"},
		{"s3://bucket/x", "AWS_REGION", "eu-west-1", "https://s3.eu-west-1.amazonaws.com"},
		{"s3://bucket/x", "AWS_ENDPOINT_URL", "http://127.0.0.1:9000", "http://127.0.0.1:9000"},
		{"gs://bucket/x", "", "", "https://storage.googleapis.com"},
	} {
		clear(env)
		env[c.variable] = c.value
		if u, err := Endpoint(c.url, o); err != nil || u.String() != c.want {
			t.Errorf("%+v: %v, %v", c, u, err)
		}
	}
	if u, err := Endpoint("file:///x", o); u != nil || err != nil {
		t.Errorf("%v, %v", u, err)
	}
}

func TestOpenErrors(t *testing.T) {
	t.Parallel()
	transport := http.DefaultTransport
	for url, c := range map[string]struct {
		o    Options
		text string
	}{
		"s3://Bucket/x": {Options{Transport: transport}, "is not the name of a bucket"},
		"s3://b":        {Options{Transport: transport}, "is not the name of a bucket"},
		"s3://bucket":   {Options{}, "no HTTP transport"},
		"s3://bucket/e": {Options{Transport: transport, Endpoint: "ftp://x"}, "is not a URL such as"},
		"s3://bucket/k": {Options{Transport: transport, Encryption: "rot13"}, "unknown encryption"},
		"ftp://x":       {Options{}, "the scheme is unknown"},
		"file://x":      {Options{}, "absolute path"},
	} {
		if _, _, err := Open(url, c.o); err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, want %q", url, err, c.text)
		}
	}
	if !IsURL("s3://x/y") || IsURL(filepath.Join("a", "b")) || IsURL("ftp://x") {
		t.Error("IsURL")
	}
}

// TestNoService: an error about a service that does not answer has its address, and not the whole URL again.
func TestNoService(t *testing.T) {
	s, _, err := Open("s3://bucket/x", Options{Endpoint: "http://127.0.0.1:1", Transport: &http.Transport{}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Stat(t.Context(), "x/y.uwc")
	if want := "s3://bucket/x/y.uwc: the object store at http://127.0.0.1:1 does not answer: connection refused"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
