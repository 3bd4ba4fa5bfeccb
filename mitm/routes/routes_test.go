package routes

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestPortIsUsedAgain: a port whose connection has ended is free for the next
// one, in whatever order that, its route and the end of the old one are noticed.
func TestPortIsUsedAgain(t *testing.T) {
	r := New()
	for i, next := range []func(old *Slot){
		func(old *Slot) { // the end is noticed first
			r.Remove(1, old)
		},
		func(*Slot) {}, // the new connection
		func(old *Slot) { // the new route
			time.AfterFunc(10*time.Millisecond, func() { r.Remove(1, old) })
			if err := r.Announce(t.Context(), 1, "new:1"); err != nil {
				t.Error(err)
			}
		},
	} {
		old, err := r.Connect(1)
		if err != nil || r.Announce(t.Context(), 1, "old:1") != nil || r.Await(old) != "old:1" {
			t.Fatal(i, err)
		}
		next(old)
		s, err := r.Connect(1)
		if err != nil || s == old {
			t.Fatal(i, err)
		}
		if i < 2 {
			if err := r.Announce(t.Context(), 1, "new:1"); err != nil {
				t.Error(i, err)
			}
		}
		if got := r.Await(s); got != "new:1" {
			t.Errorf("%d: to %q", i, got)
		}
		r.Remove(1, old) // which is late, and not the new one
		if r.slots[1] != s {
			t.Errorf("%d: the new connection was forgotten with the old one", i)
		}
		r.Remove(1, s)
	}
	if len(r.slots) != 0 || r.waiting != 0 {
		t.Errorf("%d slots, %d wait", len(r.slots), r.waiting)
	}
}

// TestRoutesAreBounded: in number and in age, also those of connections; open
// connections with a route do not count.
func TestRoutesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New()
		for port := range maxWaiting {
			if err := r.Announce(t.Context(), port, "x:1"); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Announce(t.Context(), maxWaiting, "x:1"); !errors.Is(err, errFull) {
			t.Errorf("one more: %v", err)
		}
		if _, err := r.Connect(maxWaiting); !errors.Is(err, errFull) {
			t.Errorf("one more connection: %v", err)
		}
		open, err := r.Connect(1)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Connect(maxWaiting); err != nil {
			t.Errorf("a connection with its route counts: %v", err)
		}
		time.Sleep(pairingTimeout + time.Second)
		synctest.Wait()
		if len(r.slots) != 1 || r.slots[1] != open || r.waiting != 0 {
			t.Errorf("%d slots, %d wait", len(r.slots), r.waiting)
		}
		r.Close()
		if err := r.Announce(t.Context(), 2, "x:1"); !errors.Is(err, errClosed) {
			t.Errorf("after the end: %v", err)
		}
	})
}
