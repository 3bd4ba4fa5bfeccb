// Package routes assigns destinations to redirected connections. A Table has a Slot for each connection: package
// mitm calls Connect when the connection arrives, and Announce when the hook in the client announces its
// destination.
//
//	slot, err := table.Connect(port)
//	to := table.Await(slot)
package routes

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// pairingTimeout is how long a redirected connection waits for its route, i.e. destination, or a route for
	// its connection.
	pairingTimeout = 5 * time.Second
	// portReuseDelay is how long the announcement of a route waits until an earlier connection from the same
	// port is closed. The system can reuse a port before the proxy notices the end of the old connection.
	portReuseDelay = time.Second
	// maxWaiting limits the number of slots in which the connection or the route is missing.
	maxWaiting = 4096
)

var (
	errFull   = errors.New("too many connections at the same time wait until their server is known")
	errClosed = errors.New("the proxy is stopping")
)

// A TakenError is the error for a second route, i.e. destination, of a redirected connection.
type TakenError struct {
	// Port is the client's local port of the connection.
	Port int

	// To is the destination that the connection already has, as host:port.
	To string
}

// Error describes the conflict.
func (e *TakenError) Error() string {
	return fmt.Sprintf("the connection from port %d has a route already", e.Port)
}

// A Table assigns destinations (routes) to connections that the Node hook has redirected to the proxy. The hook
// identifies a connection by its local port as soon as it is connected. The connection and its route may arrive
// in any order. The first route counts and cannot be replaced until the connection is closed.
//
// Limits: 4,096 incomplete slots, which exist for at most 5 s.
//
// Source: mitm/README.md#node-hook
type Table struct {
	// mu guards the fields below, and those of all slots.
	mu sync.Mutex
	// closed means that the table accepts no more connections and routes.
	closed bool

	// slots are the entries by the client's port.
	slots map[int]*Slot
	// waiting is the number of slots that still lack the connection or the route.
	waiting int
}

// A Slot is an entry of the Table in which a redirected connection and its destination are matched. The
// table's mutex guards its fields.
type Slot struct {
	// to is the destination, host:port; "" until it is announced.
	to string
	// announced is closed when to is set.
	announced chan struct{}

	// connected means that the redirected connection has arrived.
	connected bool

	// removed is closed when the slot is removed from the table.
	removed chan struct{}

	// expiry removes the slot if connection or destination are still missing.
	expiry *time.Timer
}

// New returns an empty Table.
func New() *Table {
	return &Table{slots: make(map[int]*Slot)}
}

// addSlot adds a slot for a client's port. The caller must have locked t.mu.
//
// Errors: errFull; errClosed.
func (t *Table) addSlot(port int) (*Slot, error) {
	switch {
	case t.closed:
		return nil, errClosed
	case t.waiting >= maxWaiting:
		return nil, errFull
	}
	s := &Slot{announced: make(chan struct{}), removed: make(chan struct{})}
	s.expiry = time.AfterFunc(pairingTimeout, func() { t.expire(port, s) })
	t.slots[port] = s
	t.waiting++
	return s, nil
}

// complete reports whether both the connection and its route have arrived.
func (s *Slot) complete() bool { return s.connected && s.to != "" }

// stopExpiryIfComplete stops the expiry of a complete slot. The caller has locked t.mu.
func (t *Table) stopExpiryIfComplete(s *Slot) {
	if s.complete() {
		s.expiry.Stop()
		t.waiting--
	}
}

// expire removes a slot that is still incomplete.
func (t *Table) expire(port int, s *Slot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !s.complete() {
		t.removeLocked(port, s)
	}
}

// Remove removes a slot after its connection was closed.
func (t *Table) Remove(port int, s *Slot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.removeLocked(port, s)
}

// removeLocked is Remove for callers that have locked t.mu.
func (t *Table) removeLocked(port int, s *Slot) {
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

// Announce sets the destination, host:port, of the connection from a port.
//
// Errors: *TakenError if it has one already; errFull; errClosed; that of ctx.
func (t *Table) Announce(ctx context.Context, port int, to string) error {
	timer := time.NewTimer(portReuseDelay)
	defer timer.Stop()
	for {
		taken, ended, err := t.tryAnnounce(port, to)
		if taken == nil || err != nil {
			return err
		}
		if ended == nil {
			return taken
		}

		// The route may belong to an earlier connection from the same port.
		select {
		case <-ended:
		case <-timer.C:
			return taken
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// tryAnnounce is Announce without waiting. taken is set if the connection from the port already has a
// destination; ended is then closed when that connection has ended, or nil if it has not arrived yet.
func (t *Table) tryAnnounce(port int, to string) (taken *TakenError, ended <-chan struct{}, err error) {
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
	return &TakenError{port, s.to}, ended, nil
}

// Connect returns the slot of a new connection from a port. An earlier connection from that port must have
// ended.
func (t *Table) Connect(port int) (s *Slot, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s = t.slots[port]

	// The port is used again, so the old connection has ended.
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

// Await waits for the destination of a slot's connection and returns it; "" if none was announced in time.
func (t *Table) Await(s *Slot) string {
	select {
	case <-s.announced:
	case <-s.removed:
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return s.to
}

// Close removes all slots. None can be added afterwards.
func (t *Table) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	t.closed = true
	for port, s := range t.slots {
		t.removeLocked(port, s)
	}
}
