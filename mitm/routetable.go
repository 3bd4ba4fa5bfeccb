package mitm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

const (
	// routeWait is how long a redirected connection waits for its route, or a
	// route for its connection.
	routeWait = 5 * time.Second
	// routeGrace is how long an announcement waits for the connection that had
	// its port before to be closed: the system gives a port to a new connection
	// as soon as the old one has ended, which is noticed here a little later.
	routeGrace = time.Second
	// maxRoutes is how many connections and announcements wait for the other.
	maxRoutes = 4096
)

// A RouteConflict is an announcement that was refused, because the connection
// has a route already.
type RouteConflict struct {
	// Port is the local one of the connection's client.
	Port int

	// To is where the connection goes, host:port.
	To string

	// Refused is where the refused announcement would send it, host:port.
	Refused string
}

var (
	errRoutesFull   = errors.New("too many connections wait for their routes")
	errRoutesClosed = errors.New("the proxy is stopping")
)

// A routeTakenError refuses a second route for a connection.
type routeTakenError struct {
	port int
	to   string
}

func (e *routeTakenError) Error() string {
	return fmt.Sprintf("the connection from port %d has a route already", e.port)
}

// A routeTable pairs connections that a hook redirected with the addresses that
// they were meant for. The hook names a connection by its local port, as soon
// as it is connected; what comes first, the connection or its route, waits for
// the other. The first route of a connection counts; it keeps others out until
// the connection is closed.
//
// Limits: 4,096 connections and routes that wait for the other, 5 s each.
//
// Source: RESEARCH.md#node-hook
type routeTable struct {
	mu       sync.Mutex
	listener net.Listener
	closed   bool

	// slots are by the client's port; waiting of them lack the connection or the
	// route.
	slots   map[int]*routeSlot
	waiting int
}

// A routeSlot is where a connection and its route meet. Its fields are guarded
// by the table's mutex.
type routeSlot struct {
	// to is where the connection goes; "": not announced yet. announced is closed
	// when it is set.
	to        string
	announced chan struct{}

	// connected says that the connection has come.
	connected bool

	// removed is closed when the slot is removed from the table.
	removed chan struct{}

	// expiry removes the slot, unless both have come.
	expiry *time.Timer
}

func newRouteTable() *routeTable {
	return &routeTable{slots: make(map[int]*routeSlot)}
}

// addSlot adds a slot for a port. t.mu is held.
//
// Errors: errRoutesFull; errRoutesClosed.
func (t *routeTable) addSlot(port int) (*routeSlot, error) {
	switch {
	case t.closed:
		return nil, errRoutesClosed
	case t.waiting >= maxRoutes:
		return nil, errRoutesFull
	}
	s := &routeSlot{announced: make(chan struct{}), removed: make(chan struct{})}
	s.expiry = time.AfterFunc(routeWait, func() { t.expire(port, s) })
	t.slots[port] = s
	t.waiting++
	return s, nil
}

// complete reports whether a slot has both the connection and its route.
func (s *routeSlot) complete() bool { return s.connected && s.to != "" }

// stopExpiryIfComplete stops the expiry of a slot that has both the connection and its
// route. t.mu is held.
func (t *routeTable) stopExpiryIfComplete(s *routeSlot) {
	if s.complete() {
		s.expiry.Stop()
		t.waiting--
	}
}

// expire removes a slot in which the one has waited for the other for too long.
func (t *routeTable) expire(port int, s *routeSlot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !s.complete() {
		t.removeLocked(port, s)
	}
}

func (t *routeTable) remove(port int, s *routeSlot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.removeLocked(port, s)
}

// removeLocked is remove where t.mu is held.
func (t *routeTable) removeLocked(port int, s *routeSlot) {
	if t.slots[port] != s {
		return
	}
	delete(t.slots, port)
	if !s.complete() {
		t.waiting--
	}
	s.expiry.Stop()
	close(s.removed)
}

// announce takes the route of the connection from a port.
//
// Errors: *routeTakenError if it has one already; errRoutesFull;
// errRoutesClosed; that of ctx.
func (t *routeTable) announce(ctx context.Context, port int, to string) error {
	grace := time.NewTimer(routeGrace)
	defer grace.Stop()
	for {
		taken, ended, err := t.tryAnnounce(port, to)
		if taken == nil || err != nil {
			return err
		}
		if ended == nil {
			return taken
		}
		select {
		case <-ended:
		case <-grace.C:
			return taken
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// tryAnnounce is announce without waiting. ended is closed when the connection
// that has the route has ended; nil if that has not come yet.
func (t *routeTable) tryAnnounce(port int, to string) (taken *routeTakenError, ended <-chan struct{}, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.slots[port]
	if s == nil {
		if s, err = t.addSlot(port); err != nil {
			return nil, nil, err
		}
	}
	if s.to == "" {
		s.to = to
		close(s.announced)
		t.stopExpiryIfComplete(s)
		return nil, nil, nil
	}
	if s.connected {
		ended = s.removed
	}
	return &routeTakenError{port, s.to}, ended, nil
}

// connectSlot returns the slot of a new connection from a port. A connection that
// had the port before has ended.
func (t *routeTable) connectSlot(port int) (s *routeSlot, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s = t.slots[port]
	if s != nil && s.connected {
		t.removeLocked(port, s)
		s = nil
	}
	if s == nil {
		if s, err = t.addSlot(port); err != nil {
			return nil, err
		}
	}
	s.connected = true
	t.stopExpiryIfComplete(s)
	return s, nil
}

// awaitRoute returns where the connection of a slot is to go, "" if no route was
// announced in time.
func (t *routeTable) awaitRoute(s *routeSlot) string {
	select {
	case <-s.announced:
	case <-s.removed:
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return s.to
}

func (t *routeTable) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	t.closed = true
	if t.listener != nil {
		_ = t.listener.Close()
	}
	for port, s := range t.slots {
		t.removeLocked(port, s)
	}
}
