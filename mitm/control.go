package mitm

import (
	"crypto/subtle"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strings"

	"unwire/mitm/routes"
)

// Paths of the control endpoints, which the hook in a launched Node program calls.
const (
	// redirectPath is the endpoint that returns the address of the redirect listener, to which the hook
	// connects instead of to servers.
	redirectPath = "/.well-known/unwire/redirect"

	// routePath is the endpoint to which the hook reports the server that a redirected connection is meant for.
	routePath = "/.well-known/unwire/route"

	// reachPath is the endpoint that reports whether a server can be connected to.
	reachPath = "/.well-known/unwire/reach"
)

const (
	// tokenHeader is the request header with the secret Options.ControlToken. A web page cannot send this
	// header to another site without a CORS preflight request, which is refused.
	tokenHeader = "Unwire-Token"

	// minControlToken is the shortest token, in bytes.
	minControlToken = 16

	// maxControlBody limits the body of a control request, in bytes.
	maxControlBody = 4 << 10
)

// isControl reports whether a path is a control endpoint.
func isControl(path string) bool {
	switch path {
	case redirectPath, routePath, reachPath:
		return true
	}
	return false
}

// serveControl responds to a request to a control endpoint. Only the launched program may send such requests,
// although other programs, users and web pages can connect to the listener too: an announced route determines
// where a program's data goes, and reachability checks could be used as a port scanner.
//
// Source: mitm/README.md#node-hook
func (p *Proxy) serveControl(w http.ResponseWriter, r *http.Request, c *clientConn) {
	if !p.isFromLaunchedProgram(r, c.LocalAddr()) {
		p.log.Warn("a control request is refused", "path", r.URL.Path, "from", r.RemoteAddr)
		http.Error(w, "this endpoint is only for the program that unwire launched", http.StatusForbidden)
		return
	}
	method := http.MethodPost
	if r.URL.Path == redirectPath {
		method = http.MethodGet
	}
	if r.Method != method {
		w.Header().Set("Allow", method)
		http.Error(w, "the request method must be "+method, http.StatusMethodNotAllowed)
		return
	}
	switch r.URL.Path {
	case redirectPath:
		p.serveRedirect(w)
	case routePath:
		p.serveAnnouncement(w, r)
	case reachPath:
		p.serveReach(w, r, c)
	}
}

// isFromLaunchedProgram reports whether a control request comes from the launched program. The token alone
// proves it. The other checks stop a web page that has learned the token: it connects to loopback either by a
// host name of its own (DNS rebinding), which the Host header shows, or from another site, which the browser's
// headers show.
func (p *Proxy) isFromLaunchedProgram(r *http.Request, local net.Addr) bool {
	to, ok := local.(*net.TCPAddr)
	if !ok || !to.IP.IsLoopback() || r.Host != to.String() {
		return false
	}
	for name := range r.Header {
		if name == "Origin" || strings.HasPrefix(name, "Sec-Fetch-") {
			return false
		}
	}

	// Compare in constant time, so that the time does not reveal the token.
	tokens := r.Header[tokenHeader]
	return len(tokens) == 1 && subtle.ConstantTimeCompare([]byte(tokens[0]), []byte(p.opts.ControlToken)) == 1
}

// serveRedirect responds with the address of the redirect listener.
func (p *Proxy) serveRedirect(w http.ResponseWriter) {
	addr, err := p.redirectAddr()
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(struct {
		Addr string `json:"addr"`
	}{addr})
}

// serveAnnouncement handles the announcement of the server that a redirected connection is meant for.
func (p *Proxy) serveAnnouncement(w http.ResponseWriter, r *http.Request) {
	var route struct {
		// Port is the local one of the client's connection.
		Port int `json:"port"`
		// To is host:port.
		To string `json:"to"`
	}
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxControlBody)).Decode(&route)
	if _, _, splitErr := net.SplitHostPort(route.To); err != nil || splitErr != nil {
		http.Error(w, "want {\"port\": PORT, \"to\": \"HOST:PORT\"}", http.StatusBadRequest)
		return
	}

	// A second route could be an attempt to divert the connection.
	var taken *routes.TakenError
	switch err := p.routes.Announce(r.Context(), route.Port, route.To); {
	case errors.As(err, &taken):
		p.log.Warn("a second route is refused", "port", route.Port, "to", taken.To, "refused", route.To)
		if p.opts.RouteConflict != nil {
			p.opts.RouteConflict(RouteConflict{Port: route.Port, To: taken.To, Refused: route.To})
		}
		http.Error(w, err.Error(), http.StatusConflict)
	case err != nil:
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}
