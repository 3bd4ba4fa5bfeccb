package mcp

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// headerTime bounds how long a client may take for a request's headers.
	headerTime = 10 * time.Second

	// sessionTime is how long a session may be idle.
	sessionTime = time.Hour

	// maxHeader bounds the headers of a request, in bytes.
	maxHeader = 64 << 10
)

// ServeHTTP serves clients over HTTP (MCP's streamable transport) until ctx is done. The listener must be on
// loopback. A request is refused unless its Host is the listener's address or localhost, so that a DNS name
// that an attacker controls does not lead here (DNS rebinding); its Origin, if it has one, is this server, so
// that no web page can make calls; and it has the token. shutdown is called at the end with a function that
// ends the server.
func (s *Server) ServeHTTP(ctx context.Context, listener net.Listener, token string, shutdown func(func(context.Context) error)) error {
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s.server }, &sdk.StreamableHTTPOptions{
		SessionTimeout: sessionTime, MaxRequestBodyBytes: maxRequest,
	})
	guard := &guard{next: handler, token: sha256.Sum256([]byte(token)), port: portOf(listener)}
	srv := &http.Server{
		Handler: guard, ReadHeaderTimeout: headerTime, MaxHeaderBytes: maxHeader,
		// Streams of events end with the context.
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(listener) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	shutdown(func(ctx context.Context) error {
		for session := range s.server.Sessions() {
			go session.Close() //nolint:errcheck // its client is being disconnected
		}
		return errors.Join(srv.Shutdown(ctx), srv.Close())
	})
	return nil
}

// portOf returns the port of a listener as text.
func portOf(l net.Listener) string {
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return ""
	}
	return port
}

// A guard is an HTTP handler that checks the host, origin and token of requests before the MCP server
// gets them.
type guard struct {
	// next is the handler of the MCP server.
	next http.Handler

	// token is the SHA-256 of the token that clients must send.
	token [sha256.Size]byte

	// port is the port of this server.
	port string
}

// ServeHTTP passes a request on to the MCP server if it is allowed.
func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case !g.isOwn(r.Host):
		g.refuse(w, http.StatusForbidden, "the Host header of the request does not name this server")
	case !g.originAllowed(r.Header.Values("Origin")):
		g.refuse(w, http.StatusForbidden, "web pages cannot use this server")
	case !g.authorized(r.Header.Values("Authorization")):
		w.Header().Set("WWW-Authenticate", `Bearer realm="unwire"`)
		g.refuse(w, http.StatusUnauthorized, "send the token that 'unwire mcp' printed at start, as 'Authorization: Bearer TOKEN'")
	default:
		g.next.ServeHTTP(w, r)
	}
}

// refuse answers a request with an HTTP status and a reason.
func (g *guard) refuse(w http.ResponseWriter, status int, why string) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	http.Error(w, why, status)
}

// isOwn reports whether the HOST:PORT in a request is this server's: localhost or a loopback address, and
// its port.
func (g *guard) isOwn(hostport string) bool {
	host, port, err := net.SplitHostPort(hostport)
	if err != nil || port != g.port {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// originAllowed reports whether a request has no Origin header, as from programs other than browsers, or
// only this server's origin.
func (g *guard) originAllowed(origins []string) bool {
	for _, o := range origins {
		u, err := url.Parse(o)
		if err != nil || u.Scheme != "http" || !g.isOwn(u.Host) {
			return false
		}
	}
	return true
}

// authorized reports whether the Authorization headers of a request have the token. It compares in
// constant time.
func (g *guard) authorized(values []string) bool {
	if len(values) != 1 {
		return false
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	sum := sha256.Sum256([]byte(strings.TrimSpace(token)))
	return subtle.ConstantTimeCompare(sum[:], g.token[:]) == 1 && strings.EqualFold(scheme, "Bearer")
}

// URL returns the URL of an MCP server that listens at l.
func URL(l net.Listener) string { return fmt.Sprintf("http://%s/mcp", l.Addr()) }
