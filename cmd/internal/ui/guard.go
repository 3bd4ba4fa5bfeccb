package ui

import (
	"crypto/subtle"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
)

const (
	// tokenHeader carries the token. A page of another origin cannot send it: it has no token, and browsers ask
	// the server before they send such a header.
	tokenHeader = "X-Unwire-Token"

	// apiPath is the beginning of the paths of the API.
	apiPath = "/api/"
)

// contentPolicy allows the page's own modules, styles and requests, and nothing else: no
// inline script or style, no text that becomes script or markup (Trusted Types), no other
// server, no frames.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// allowHost permits requests whose Host header has the address addr, or localhost with its port.
func (s *Server) allowHost(addr net.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hosts = append(s.hosts, addr.String())
	if _, port, err := net.SplitHostPort(addr.String()); err == nil {
		s.hosts = append(s.hosts, net.JoinHostPort("localhost", port))
	}
}

// ServeHTTP answers a request for the page, or for the API if the request has the token. It rejects
// requests for which refuse returns a reason.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if why := s.refuse(r); why != "" {
		http.Error(w, why, http.StatusForbidden)
		return
	}
	if !strings.HasPrefix(r.URL.Path, apiPath) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			http.Error(w, "the page accepts only GET requests", http.StatusMethodNotAllowed)
			return
		}
		s.static.ServeHTTP(w, r)
		return
	}
	tokens := r.Header[tokenHeader]
	// Compare in constant time, so that the time does not reveal the token.
	if len(tokens) != 1 || subtle.ConstantTimeCompare([]byte(tokens[0]), []byte(s.token)) != 1 {
		http.Error(w, "the token is missing or wrong: open the URL that unwire printed", http.StatusUnauthorized)
		return
	}
	s.serveAPI(w, r)
}

// refuse returns the reason to reject a request regardless of its path, or "" to answer it. A page of
// another site can make a browser send requests to a loopback address. If it does so with a host name
// that resolves to loopback (DNS rebinding), the Host header has that name; otherwise Origin or
// Sec-Fetch-Site name the other site.
func (s *Server) refuse(r *http.Request) string {
	s.mu.Lock()
	known := slices.Contains(s.hosts, strings.ToLower(r.Host))
	s.mu.Unlock()
	if !known {
		return "the workbench refuses requests with this Host header"
	}
	for _, origin := range r.Header["Origin"] {
		if origin != "http://"+strings.ToLower(r.Host) {
			return "the workbench refuses requests from other web sites"
		}
	}
	for _, site := range r.Header["Sec-Fetch-Site"] {
		if site != "same-origin" && site != "none" {
			return "the workbench refuses requests from other web sites"
		}
	}
	return ""
}

// serveAPI answers an API request that has the token.
func (s *Server) serveAPI(w http.ResponseWriter, r *http.Request) {
	e, ok := s.api[strings.TrimPrefix(r.URL.Path, apiPath)]
	if !ok {
		sendError(w, notFound("the workbench has no page %s", r.URL.Path))
		return
	}
	method := http.MethodGet
	if e.post {
		method = http.MethodPost
	}
	if r.Method != method {
		w.Header().Set("Allow", method)
		sendError(w, &failure{http.StatusMethodNotAllowed, "want " + method})
		return
	}
	q := &request{library: s.library, query: r.URL.Query()}
	if e.post {
		var err error
		if q.body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody)); err != nil {
			sendError(w, badRequest("%v", err))
			return
		}
	}
	value, err := e.answer(r.Context(), q)
	if err != nil {
		sendError(w, err)
		return
	}
	send(w, value)
}
