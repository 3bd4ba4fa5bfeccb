// Package routes pairs redirected connections with where they go. A Table has a Slot for
// each: package mitm connects one when a connection comes, and announces where it goes
// when the hook in the client says so.
package routes

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// wait is how long a redirected connection waits for its route, or a
	// route for its connection.
	wait = 5 * time.Second
	// grace is how long an announcement waits for the connection that had
	// its port before to be closed: the system gives a port to a new connection
	// as soon as the old one has ended, which is noticed here a little later.
	grace = time.Second
	// maxWaiting is how many connections and announcements wait for the other.
	maxWaiting = 4096
)

var (
	errFull   = errors.New("too many connections wait for their routes")
	errClosed = errors.New("the proxy is stopping")
)

// A TakenError refuses a second route for a connection.
type TakenError struct {
	// Port is the local one of the connection's client.
	Port int

	// To is where the connection goes, host:port.
	To string
}

func (e *TakenError) Error() string {
	return fmt.Sprintf("the connection from port %d has a route already", e.Port)
}

// A Table pairs connections that a hook redirected with the addresses that
// they were meant for. The hook names a connection by its local port, as soon
// as it is connected; what comes first, the connection or its route, waits for
// the other. The first route of a connection counts; it keeps others out until
// the connection is closed.
//
// Limits: 4,096 connections and routes that wait for the other, 5 s each.
//
// Source: mitm/README.md#node-hook
type Table struct {
	mu     sync.Mutex
	closed bool

	// slots are by the client's port; waiting of them lack the connection or the
	// route.
	slots   map[int]*Slot
	waiting int
}

// A Slot is where a connection and its route meet. Its fields are guarded
// by the table's mutex.
type Slot struct {
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

func New() *Table {
	return &Table{slots: make(map[int]*Slot)}
}

// addSlot adds a slot for a port. t.mu is held.
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
	s.expiry = time.AfterFunc(wait, func() { t.expire(port, s) })
	t.slots[port] = s
	t.waiting++
	return s, nil
}

// complete reports whether a slot has both the connection and its route.
func (s *Slot) complete() bool { return s.connected && s.to != "" }

// stopExpiryIfComplete stops the expiry of a slot that has both the connection and its
// route. t.mu is held.
func (t *Table) stopExpiryIfComplete(s *Slot) {
	if s.complete() {
		s.expiry.Stop()
		t.waiting--
	}
}

// expire removes a slot in which the one has waited for the other for too long.
func (t *Table) expire(port int, s *Slot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !s.complete() {
		t.removeLocked(port, s)
	}
}

// Remove forgets a slot, whose connection was closed.
func (t *Table) Remove(port int, s *Slot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.removeLocked(port, s)
}

// removeLocked is Remove where t.mu is held.
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

// Announce takes the route of the connection from a port.
//
// Errors: *TakenError if it has one already; errFull;
// errClosed; that of ctx.
func (t *Table) Announce(ctx context.Context, port int, to string) error {
	timer := time.NewTimer(grace)
	defer timer.Stop()
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
		case <-timer.C:
			return taken
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// tryAnnounce is Announce without waiting. ended is closed when the connection
// that has the route has ended; nil if that has not come yet.
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

// Connect returns the slot of a new connection from a port. A connection that
// had the port before has ended.
func (t *Table) Connect(port int) (s *Slot, err error) {
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

// Await returns where the connection of a slot is to go, "" if no route was
// announced in time.
func (t *Table) Await(s *Slot) string {
	select {
	case <-s.announced:
	case <-s.removed:
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return s.to
}

// Close forgets all slots; there are no more after it.
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
