// Package s3test starts an S3 service with faults for tests.
package s3test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// A Fault simulates a failure of the S3 service. It handles a request instead of the service and returns true,
// or returns false to let the service handle it. It may set response headers, and may panic with
// http.ErrAbortHandler to cut the connection.
type Fault func(w http.ResponseWriter, r *http.Request) bool

// A Service is an S3 service in this process, with the empty bucket "bucket".
type Service struct {
	// URL is the endpoint of the S3 service.
	URL string

	// mu guards fault and requests.
	mu sync.Mutex
	// fault handles a request instead of the service if it simulates a failure; nil means that no failures
	// are simulated.
	fault Fault
	// requests describes the received requests, in order, so that tests can count them.
	requests []string
}

// New starts a service, and sets the credentials for it in the environment of the test.
func New(tb testing.TB) *Service {
	tb.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("bucket"); err != nil {
		tb.Fatal(err)
	}
	handler := gofakes3.New(backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server()
	s := new(Service)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests = append(s.requests, r.Method+" "+r.URL.RequestURI())
		fault := s.fault
		s.mu.Unlock()
		if fault != nil && fault(w, r) {
			return
		}
		handler.ServeHTTP(w, r)
	}))
	tb.Cleanup(server.Close)
	s.URL = server.URL
	tb.Setenv("AWS_ACCESS_KEY_ID", "key")
	tb.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	return s
}

// SetFault sets the fault for further requests; nil removes it.
func (s *Service) SetFault(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// Count returns how many requests since the last call contained text, and forgets all requests.
func (s *Service) Count(text string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.requests {
		if strings.Contains(r, text) {
			n++
		}
	}
	s.requests = nil
	return n
}
