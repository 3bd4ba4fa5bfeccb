package call

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"

	"unwire/captures"
	"unwire/replay/outbound"
)

// A sender is the HTTP client that connect-go uses for one call. It records the request and the
// response.
type sender struct {
	// o are the options of the call.
	o *Options

	// transport sends the HTTP request.
	transport *http.Transport

	// progress records how far connecting has progressed.
	progress outbound.Progress

	// secrets are the values of the user's secret headers.
	secrets []string

	// answered means that a response has arrived; status and retryAfter are from it.
	answered bool

	// status is the HTTP status of the response.
	status int

	// retryAfter is the value of the Retry-After header.
	retryAfter string

	// mu guards the fields below.
	mu sync.Mutex
	// record is the recording of the exchange; nil if nothing is recorded.
	record captures.Recording

	// recordErr is the error of starting the recording.
	recordErr error
	// body is the response body; nil until the response arrives.
	body *answerBody

	// ended means that the recording has ended.
	ended bool

	// closed means that close was called.
	closed bool
}

// newSender returns the sender for one call.
func newSender(o *Options) *sender {
	version := "1.1"
	if o.HTTP2 || o.To.Scheme == "https" {
		version = "2"
	}
	local := outbound.CheckTarget(o.To, false, nil) == nil
	s := &sender{o: o, transport: outbound.New(o.To.Scheme, version, local, !o.HTTP2, o.Reach)}
	for _, h := range o.Headers {
		if _, token, ok := strings.Cut(h.Value, " "); h.Secret && ok && strings.EqualFold(h.Name, "authorization") {
			// without its scheme
			s.secrets = append(s.secrets, token)
		} else if h.Secret {
			s.secrets = append(s.secrets, h.Value)
		}
	}
	return s
}

// Do sends the HTTP request. It does not follow redirects.
func (s *sender) Do(req *http.Request) (*http.Response, error) {
	if err := s.o.Reach.Pace.Admit(req.Context(), req.URL.Hostname()); err != nil {
		return nil, err
	}
	if req.Header.Get("User-Agent") != "" && !s.o.names("user-agent") {
		req.Header["User-Agent"] = []string{"unwire"}
	}
	if err := s.begin(req); err != nil {
		return nil, err
	}
	var server string
	resp, err := s.transport.RoundTrip(req.WithContext(s.progress.Trace(req.Context(), &server)))
	if err != nil {
		return nil, err
	}
	s.answered, s.status, s.retryAfter = true, resp.StatusCode, resp.Header.Get("Retry-After")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.body = &answerBody{ReadCloser: resp.Body, s: s, resp: resp}
	resp.Body = s.body
	if s.closed {
		// its error is irrelevant now
		_ = resp.Body.Close()
	}
	if s.record != nil {
		s.record.Connection(connection(resp.TLS, s.o.Reach.Insecure), server)
		s.record.Response(resp.StatusCode, s.kept(resp.Header))
	}
	return resp, nil
}

// names reports whether the user has set a header with this name, in any case.
func (o *Options) names(header string) bool {
	return slices.ContainsFunc(o.Headers, func(h Header) bool { return strings.EqualFold(h.Name, header) })
}

// begin starts to record a request; its body is then recorded while it is sent.
func (s *sender) begin(req *http.Request) error {
	if s.o.Record == nil {
		return nil
	}
	version := "1.1"
	if s.o.HTTP2 || s.o.To.Scheme == "https" {
		version = "2"
	}
	record, err := s.o.Record.Begin(captures.Exchange{
		Method: req.Method, URL: req.URL.String(), HTTP: version, RequestHeaders: s.kept(req.Header), Started: time.Now(), Source: "call",
	})
	if err != nil {
		s.recordErr = fmt.Errorf("the call cannot be recorded: %w", err)
		return s.recordErr
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record = record
	if req.Body != nil && req.Body != http.NoBody {
		req.Body = &requestBody{ReadCloser: req.Body, s: s}
		req.GetBody = nil
	}
	return nil
}

// kept returns the headers for the recording: sorted by name, with secrets redacted.
func (s *sender) kept(h http.Header) captures.Headers {
	list := captures.SortedHeaders(h)
	for i := range list {
		for _, secret := range s.secrets {
			if secret != "" {
				list[i].Value = strings.ReplaceAll(list[i].Value, secret, s.o.Placeholder(secret))
			}
		}
	}
	return list
}

// chunk records bytes of the request body (captures.Up) or response body (captures.Down).
func (s *sender) chunk(dir captures.Direction, p []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.record != nil && len(p) > 0 && !s.ended {
		s.record.Chunk(dir, bytes.Clone(p))
	}
}

// end ends the record; err is the call's error, nil for none.
func (s *sender) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.record == nil || s.ended {
		return
	}
	s.ended = true
	outcome, reason := captures.Complete, ""
	switch {
	case s.body == nil:
		outcome, reason = captures.Failed, "no answer"
	case s.closed: // before the end, because of a local error
		outcome = captures.Canceled
	case s.body.err != nil && !errors.Is(s.body.err, io.EOF):
		outcome, reason = captures.Reset, s.body.err.Error()
	case s.body.err == nil && err != nil && !connect.IsWireError(err):
		outcome = captures.Canceled
	}
	if s.body == nil && err != nil {
		reason = err.Error()
	}
	if s.body != nil && len(s.body.resp.Trailer) > 0 {
		s.record.Trailers(captures.Down, s.kept(s.body.resp.Trailer))
	}
	s.record.End(outcome, reason)
}

// exchange returns the number of the recorded exchange; 0 if nothing is recorded.
func (s *sender) exchange() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.record == nil {
		return 0
	}
	return s.record.ID()
}

// close closes the response body, also one that arrives later, and the idle connections. Reading from the body then
// fails; it would not if only the context ended, because the transport waits for more of the request body.
func (s *sender) close() {
	s.mu.Lock()
	s.closed = true
	body := s.body
	s.mu.Unlock()
	if body != nil {
		// its error is irrelevant now
		_ = body.ReadCloser.Close()
	}
	s.transport.CloseIdleConnections()
}

// connection converts the state of a TLS connection to the form that captures store; nil gives the zero
// value.
func connection(state *tls.ConnectionState, insecure bool) captures.TLS {
	if state == nil {
		return captures.TLS{}
	}
	return captures.TLS{
		Version: strings.TrimPrefix(tls.VersionName(state.Version), "TLS "), Cipher: tls.CipherSuiteName(state.CipherSuite),
		ServerName: state.ServerName, ALPN: state.NegotiatedProtocol, Unverified: insecure, CA: captures.AuthorityOf(*state),
	}
}

// A requestBody is a request body that records the bytes that the HTTP transport reads from it.
type requestBody struct {
	// ReadCloser is the body whose bytes are recorded.
	io.ReadCloser

	// s records the bytes.
	s *sender
}

// Read reads from the body and records the bytes.
func (b *requestBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.s.chunk(captures.Up, p[:n])
	return n, err
}

// An answerBody is a response body that records the bytes read from it and the error at its end.
type answerBody struct {
	// ReadCloser is the body whose bytes are recorded.
	io.ReadCloser

	// s records the bytes.
	s *sender

	// resp is the response, whose trailers are complete at the end of the body.
	resp *http.Response
	// err is the error with which the body ended; nil before its end.
	err error
}

// Read reads from the body and records the bytes.
func (b *answerBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.s.chunk(captures.Down, p[:n])
	if err != nil {
		b.s.mu.Lock()
		defer b.s.mu.Unlock()
		b.err = err
	}
	return n, err
}

// fail fills in the result of a call that failed with err: a server's error, or the reason why no
// response arrived.
func (c *caller) fail(s *sender, err error) {
	r := c.result
	e := new(connect.Error)
	if !errors.As(err, &e) {
		e = connect.NewError(connect.CodeUnknown, err)
	}
	r.Code, r.Number, r.Message = e.Code().String(), int(e.Code()), e.Message()
	for _, d := range e.Details() {
		r.Details = append(r.Details, Detail{Type: d.Type(), Value: d.Bytes()})
	}
	if !s.answered {
		failure := s.progress.Failure(err, c.o.Timeout)
		r.Local, r.Reason, r.Message = true, failure.Reason, failure.Message
	}
}
