package mitm

import (
	"encoding/json"
	"net"
	"net/http"
	"sync"
	"time"
)

// Paths by which a launched program's hook finds the redirect listener, and
// tells it where a connection was to go.
const (
	redirectPath = "/.well-known/unwire/redirect"
	routePath    = "/.well-known/unwire/route"
	reachPath    = "/.well-known/unwire/reach"

	routeWait    = 5 * time.Second
	maxRoutes    = 4096
	maxRouteBody = 4 << 10
)

// A routeTable pairs connections that a hook redirected with the addresses that
// they were meant for. The hook names a connection by its local port, as soon
// as it is connected; what comes first, the connection or its route, waits for
// the other.
//
// Source: RESEARCH.md#node-hook
type routeTable struct {
	mu       sync.Mutex
	listener net.Listener
	closed   bool
	done     chan struct{}      // closed with closed
	slots    map[int]*routeSlot // by the client's port
}

type routeSlot struct {
	to    chan string // one address
	timer *time.Timer
}

func newRouteTable() *routeTable {
	return &routeTable{done: make(chan struct{}), slots: make(map[int]*routeSlot)}
}

// slot returns the place where a connection and its route meet; nil if there
// are too many that never did.
func (t *routeTable) slot(port int) *routeSlot {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s, ok := t.slots[port]; ok {
		return s
	}
	if len(t.slots) >= maxRoutes {
		return nil
	}
	s := &routeSlot{to: make(chan string, 1)}
	s.timer = time.AfterFunc(2*routeWait, func() { t.drop(port, s) })
	t.slots[port] = s
	return s
}

func (t *routeTable) drop(port int, s *routeSlot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.slots[port] == s {
		delete(t.slots, port)
	}
}

func (t *routeTable) announce(port int, to string) bool {
	s := t.slot(port)
	if s == nil {
		return false
	}
	select {
	case s.to <- to:
		return true
	default:
		return false
	}
}

// wait returns where the connection from a port is to go, "" if nobody says.
func (t *routeTable) wait(port int) string {
	s := t.slot(port)
	if s == nil {
		return ""
	}
	defer s.timer.Stop()
	defer t.drop(port, s)
	select {
	case to := <-s.to:
		return to
	case <-time.After(routeWait):
	case <-t.done:
	}
	return ""
}

func (t *routeTable) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	t.closed = true
	close(t.done)
	if t.listener != nil {
		_ = t.listener.Close()
	}
}

// redirect returns the address of the redirect listener, opening it first.
func (p *Proxy) redirect() (string, error) {
	t := p.routes
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return "", net.ErrClosed
	}
	if t.listener == nil {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", err
		}
		if !p.addListener(ln) {
			_ = ln.Close()
			return "", net.ErrClosed
		}
		t.listener = ln
		go p.serveRedirected(ln)
	}
	return t.listener.Addr().String(), nil
}

func (p *Proxy) serveRedirected(ln net.Listener) {
	for {
		conn, err := ln.Accept()
		if err != nil {
			return // closed by Shutdown
		}
		go p.serveRoute(p.adopt(conn))
	}
}

func (p *Proxy) serveRoute(c *clientConn) {
	from, ok := c.RemoteAddr().(*net.TCPAddr)
	if !ok {
		_ = c.Close()
		return
	}
	to := p.routes.wait(from.Port)
	if to == "" {
		p.log.Warn("a redirected connection has no route", "from", from)
		c.reset()
		return
	}
	p.serveTo(c, to)
}

// serve answers a hook's requests, and reports whether r was one.
func (t *routeTable) serve(p *Proxy, w http.ResponseWriter, r *http.Request) bool {
	switch r.URL.Path {
	case redirectPath:
		addr, err := p.redirect()
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return true
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(struct {
			Addr string `json:"addr"`
		}{addr})
	case routePath:
		var route struct {
			Port int    `json:"port"` // of the client's end
			To   string `json:"to"`   // host:port
		}
		body := http.MaxBytesReader(w, r.Body, maxRouteBody)
		err := json.NewDecoder(body).Decode(&route)
		if _, _, splitErr := net.SplitHostPort(route.To); err != nil || splitErr != nil || !t.announce(route.Port, route.To) {
			http.Error(w, "no such route", http.StatusBadRequest)
			return true
		}
		w.WriteHeader(http.StatusNoContent)
	case reachPath:
		p.serveReach(w, r)
	default:
		return false
	}
	return true
}
