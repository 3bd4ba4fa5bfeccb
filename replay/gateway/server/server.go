// Package server is the HTTP server of the gateway: the front ends behind an API key, with
// the checks that a server on loopback needs, the health and metrics pages, and the
// recording of each request.
//
//	GET  /healthz                        for everybody; the rest needs the key
//	GET  /metrics                        counters, in the text format of Prometheus
//	GET  /v1/models, /v1/models/ID       in the form of OpenAI, or of Anthropic for clients
//	                                     that send anthropic-version
//	POST /v1/chat/completions            replay/gateway/chat
//	POST /v1/responses                   replay/gateway/responses
//	POST /v1/messages                    replay/gateway/messages
//
// A page in a browser can send requests to loopback under a name that its owner chose (DNS
// rebinding), so the Host must be a name of this machine, and an Origin must be allowed.
package server

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"unwire/captures"
	"unwire/replay/agent/turn"
	"unwire/replay/gateway"
	"unwire/replay/gateway/chat"
	"unwire/replay/gateway/messages"
	"unwire/replay/gateway/openai"
	"unwire/replay/gateway/responses"
	"unwire/replay/listen"
)

// Limits of connections. Responses as a whole have no time limit, but front.Events limits each write.
const (
	headerTime = 10 * time.Second
	idleTime   = 2 * time.Minute
	maxHeader  = 64 << 10

	// lastRequests is how long Shutdown waits for requests that are no turns.
	lastRequests = time.Second
)

// Options are the settings of the gateway's HTTP server.
type Options struct {
	// Keys are the accepted API keys; each request must have one of them. At least one is required.
	Keys []string
	// Origins are the web origins that may use the server (CORS), such as http://localhost:3000.
	// Default: none.
	Origins []string
	// Recorder records each request; nil records nothing.
	Recorder captures.Recorder
	// Idle is how long the transcript of a response is kept for later requests with
	// previous_response_id. Default: 15 minutes.
	Idle time.Duration
	// BodyTime is the time limit for receiving a request body. Default: 1 minute.
	BodyTime time.Duration
	// Log receives net/http's messages about broken connections; nil discards them.
	Log *log.Logger
}

// A Server is the HTTP server of the gateway.
type Server struct {
	// o are the options with defaults filled in.
	o Options

	// core runs the turns.
	core *gateway.Core

	// keys are the hashes of the accepted API keys.
	keys [][sha256.Size]byte

	// pages are the HTTP handlers of the APIs.
	pages pages

	// http is the HTTP server.
	http *http.Server
}

// pages are the HTTP handlers of the three public APIs.
type pages struct {
	// chat and responses serve OpenAI's APIs, messages Anthropic's.
	chat, responses, messages http.Handler
}

// New returns a server for the gateway core. Shutdown must be called when it is no longer needed; it
// also shuts down core.
func New(core *gateway.Core, o Options) (*Server, error) {
	if len(o.Keys) == 0 || slices.Contains(o.Keys, "") {
		return nil, errors.New("an API key must be given, and none may be empty")
	}
	if o.BodyTime <= 0 {
		o.BodyTime = time.Minute
	}
	s := &Server{o: o, core: core, pages: pages{chat.New(core), responses.New(core, responses.Options{Idle: o.Idle}), messages.New(core)}}
	for _, key := range o.Keys {
		s.keys = append(s.keys, sha256.Sum256([]byte(key)))
	}
	s.http = &http.Server{
		Handler: s, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
		ErrorLog: o.Log,
	}
	return s, nil
}

// Serve serves requests from a listener until Shutdown is called.
func (s *Server) Serve(l net.Listener) error {
	if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Shutdown stops the server: it refuses new requests, lets running responses end until ctx ends, and
// closes all sessions.
func (s *Server) Shutdown(ctx context.Context) error {
	s.core.Shutdown(ctx)
	// All turns have ended. What is left are short requests and connections that were never
	// used, for which net/http would wait for five seconds.
	ctx, stop := context.WithTimeout(ctx, lastRequests)
	defer stop()
	err := s.http.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.http.Close()
	}
	return err
}

// ServeHTTP checks origin and API key of a request, and passes it to the handler of its API.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	if err := s.checkOrigin(w, r); err != nil {
		writeError(w, r, err)
		return
	}
	if r.Method == http.MethodOptions {
		w.WriteHeader(http.StatusNoContent)
		return
	}

	// The health check needs no key, so that supervisors can use it.
	if r.URL.Path == "/healthz" {
		health(w, r)
		return
	}
	key, ok := s.checkKey(r.Header)
	if !ok {
		w.Header().Set("WWW-Authenticate", "Bearer")
		writeError(w, r, &turn.Error{Kind: turn.Unauthorized, Code: "invalid_api_key", Message: "the API key is missing or wrong: send the key that unwire serve printed at its start as Authorization: Bearer KEY, or x-api-key: KEY"})
		return
	}
	if r.URL.Path == "/metrics" {
		s.metrics(w, r)
		return
	}

	// All other requests are recorded.
	s.limitBodyTime(w, r)
	r = r.WithContext(gateway.WithKey(r.Context(), key))
	s.record(w, r, s.pageOf(r))
}

// limitBodyTime sets a deadline for reading the request body, Options.BodyTime.
func (s *Server) limitBodyTime(w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(w)
	if control.SetReadDeadline(time.Now().Add(s.o.BodyTime)) == nil {
		r.Body = &timedBody{r.Body, control}
	}
}

// A timedBody is a request body that removes the read deadline once the body has arrived completely.
// Otherwise the deadline would cancel a request that takes longer to answer, since net/http goes on
// reading to detect that the client disconnects.
type timedBody struct {
	// ReadCloser is the request body.
	io.ReadCloser

	// control removes the deadline.
	control *http.ResponseController
}

// Read reads from the body; at its end it removes the deadline.
func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		err = errors.Join(b.control.SetReadDeadline(time.Time{}))
		if err == nil {
			err = io.EOF
		}
	}
	return n, err
}

// pageOf returns the handler of the API to which a request belongs; nil if there is none.
func (s *Server) pageOf(r *http.Request) http.Handler {
	switch {
	case forMessages(r):
		return s.pages.messages
	case r.URL.Path == "/v1/responses", strings.HasPrefix(r.URL.Path, "/v1/responses/"):
		return s.pages.responses
	}
	return s.pages.chat
}

// forMessages reports whether a request uses Anthropic's API, so that errors get the right form.
func forMessages(r *http.Request) bool {
	if r.URL.Path == "/v1/messages" || strings.HasPrefix(r.URL.Path, "/v1/messages/") {
		return true
	}
	return strings.HasPrefix(r.URL.Path, "/v1/models") && r.Header.Get(messages.VersionHeader) != ""
}

// writeError writes an error in the form of the API that the request uses.
func writeError(w http.ResponseWriter, r *http.Request, err *turn.Error) {
	if forMessages(r) {
		messages.WriteError(w, err)
		return
	}
	openai.WriteError(w, err)
}

// checkOrigin refuses requests from web pages whose origin is not allowed (CORS), and sets the response
// headers for allowed ones.
func (s *Server) checkOrigin(w http.ResponseWriter, r *http.Request) *turn.Error {
	if !listen.IsLocalName(r.Host) {
		return &turn.Error{Kind: turn.Forbidden, Code: "host_not_allowed", Message: "the Host header must be localhost or a loopback address"}
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return nil
	}
	w.Header().Add("Vary", "Origin")
	if !slices.Contains(s.o.Origins, origin) {
		return &turn.Error{Kind: turn.Forbidden, Code: "origin_not_allowed", Message: "web pages may not use this server, unless unwire serve was started with --allow-origin ORIGIN"}
	}
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", origin)
	if r.Method == http.MethodOptions {
		h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
		h.Set("Access-Control-Allow-Headers", r.Header.Get("Access-Control-Request-Headers"))
		h.Set("Access-Control-Max-Age", "600")
	}
	return nil
}

// checkKey returns the API key of a request; false if it is not valid. All keys are compared in
// constant time, so that the duration reveals nothing.
func (s *Server) checkKey(h http.Header) (string, bool) {
	key, ok := strings.CutPrefix(h.Get("Authorization"), "Bearer ")
	if !ok {
		key = h.Get("X-Api-Key")
	}
	sum, found := sha256.Sum256([]byte(key)), 0
	for _, k := range s.keys {
		found |= subtle.ConstantTimeCompare(sum[:], k[:])
	}
	return key, found == 1
}
