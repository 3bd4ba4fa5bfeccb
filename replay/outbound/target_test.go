package outbound

import (
	"errors"
	"net"
	"testing"
)

func TestGuardLooksAtTheAddress(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // nothing was written
	conn, err := guard{}.DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	if err := (guard{}).control("tcp4", "192.0.2.7:443", nil); !errors.Is(err, ErrRefused) {
		t.Errorf("a name that resolves elsewhere: %v", err)
	}
	if err := (guard{}).control("tcp6", "[::ffff:127.0.0.1]:443", nil); err != nil {
		t.Error(err)
	}
	if _, err := (guard{}).DialContext(t.Context(), "tcp", "rebound.example:443"); !errors.Is(err, ErrRefused) {
		t.Errorf("a name: %v", err)
	}
}
