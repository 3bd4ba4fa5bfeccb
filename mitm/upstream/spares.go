package upstream

import (
	"net"
	"sync"
	"time"
)

const (
	// maxSpares limits the number of spare connections, and spareLifetime how long each is kept.
	maxSpares     = 1024
	spareLifetime = 2 * time.Second
)

// Spares are open connections to servers that were not used yet and may be used by the next request. The zero
// value is empty.
type Spares struct {
	// mu guards the fields below.
	mu sync.Mutex
	// closed means that no more connections are kept.
	closed bool

	// n is the number of open connections.
	n int
	// byAddr are the connections by the key passed to Keep.
	byAddr map[string][]*spareConn
}

// A spareConn is a spare connection that expiry closes after spareLifetime.
type spareConn struct {
	// Conn is the unused connection.
	net.Conn
	// expiry closes the connection when it was not used for spareLifetime.
	expiry *time.Timer
}

// Keep keeps a connection for spareLifetime. addr is the key for Claim: the server's address, extended by
// whatever distinguishes connections to it.
func (s *Spares) Keep(addr string, conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.n >= maxSpares {
		_ = conn.Close()
		return
	}
	if s.byAddr == nil {
		s.byAddr = make(map[string][]*spareConn)
	}
	c := &spareConn{Conn: conn}
	c.expiry = time.AfterFunc(spareLifetime, func() {
		if s.remove(addr, c) {
			_ = c.Close()
		}
	})
	s.byAddr[addr] = append(s.byAddr[addr], c)
	s.n++
}

// Claim removes and returns a connection that was kept under the key addr, or returns nil.
func (s *Spares) Claim(addr string) net.Conn {
	s.mu.Lock()
	list := s.byAddr[addr]
	s.mu.Unlock()
	for _, c := range list {
		if s.remove(addr, c) {
			c.expiry.Stop()
			return c.Conn
		}
	}
	return nil
}

// remove removes the connection c with the key addr, and reports whether it was there.
func (s *Spares) remove(addr string, c *spareConn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, other := range s.byAddr[addr] {
		if other != c {
			continue
		}
		rest := append([]*spareConn(nil), s.byAddr[addr][:i]...)
		if rest = append(rest, s.byAddr[addr][i+1:]...); len(rest) > 0 {
			s.byAddr[addr] = rest
		} else {
			delete(s.byAddr, addr)
		}
		s.n--
		return true
	}
	return false
}

// Close closes all spare connections, and makes Keep close those that are added later.
func (s *Spares) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, list := range s.byAddr {
		for _, c := range list {
			c.expiry.Stop()
			_ = c.Close()
		}
	}
	clear(s.byAddr)
}
