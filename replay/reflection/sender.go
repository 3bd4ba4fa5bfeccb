package reflection

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"unwire/replay/outbound"
	"unwire/schema/reflection"
)

// A sender is the HTTP client that sends the requests for definitions.
type sender struct {
	// transport sends the HTTP requests.
	transport *http.Transport

	// pace limits and logs the requests; it may be nil.
	pace *outbound.Pace

	// progress records how far connecting got.
	progress outbound.Progress

	// requests is the number of requests that were sent.
	requests int

	// open are the response bodies to be closed at the end.
	open []io.Closer

	// status is the HTTP status of the last response; 0 before the first.
	status int

	// otherProtocol means that the response was that of a server that does not support this RPC
	// protocol.
	otherProtocol bool
}

// Do sends an HTTP request. It does not follow redirects.
func (s *sender) Do(req *http.Request) (*http.Response, error) {
	host := req.URL.Hostname()
	if err := s.pace.Admit(req.Context(), host); err != nil {
		return nil, err
	}
	s.requests++
	resp, err := s.transport.RoundTrip(req.WithContext(s.progress.Trace(req.Context(), nil)))
	if err != nil {
		return nil, err
	}
	s.status = resp.StatusCode
	ofGRPC := strings.HasPrefix(resp.Header.Get("Content-Type"), "application/grpc")
	s.otherProtocol = !ofGRPC && resp.StatusCode != http.StatusNotFound && resp.StatusCode != http.StatusTooManyRequests &&
		resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden
	if s.pace != nil {
		s.pace.Observe(host, resp.StatusCode, "", resp.Header.Get("Retry-After"))
	}
	s.open = append(s.open, resp.Body)
	resp.Body = &boundedBody{ReadCloser: resp.Body, left: maxBody}
	return resp, nil
}

// close closes the open response bodies. Cancelling the context would not unblock the transport while
// it waits for more of a request body.
func (s *sender) close() {
	for _, body := range s.open {
		// its error is irrelevant
		_ = body.Close()
	}
	s.transport.CloseIdleConnections()
}

// A boundedBody is a response body that returns an error after a number of bytes.
type boundedBody struct {
	// ReadCloser is the response body.
	io.ReadCloser

	// left is the number of bytes that may still be read.
	left int
}

// Read reads from the body, or returns an error if no more bytes are allowed.
func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("%w: an answer has more than %d bytes", reflection.ErrLimit, maxBody)
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
