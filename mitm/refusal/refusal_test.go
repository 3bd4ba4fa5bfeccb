package refusal

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"unwire/captures"
)

func TestDescribe(t *testing.T) {
	t.Parallel()
	remote := func(alert tls.AlertError) error {
		return fmt.Errorf("handshake: %w", &net.OpError{Op: "remote error", Err: alert})
	}
	for _, c := range []struct {
		err     error
		refused bool
		text    string
	}{
		{remote(48), true, `it sent the alert "unknown certificate authority"`},
		{remote(42), true, `it sent the alert "bad certificate"`},
		{remote(46), true, `it sent the alert "unknown certificate"`},
		{&net.OpError{Op: "local error", Err: tls.AlertError(20)}, true, "an alert in clear"},
		{io.EOF, true, "closed the connection during the handshake"},
		{&net.OpError{Op: "read", Err: syscall.ECONNRESET}, true, "closed the connection during the handshake"},
		{remote(70), false, "TLS with the client failed: "},
		{remote(120), false, "TLS with the client failed: "},
		{&net.OpError{Op: "local error", Err: tls.AlertError(40)}, false, "TLS with the client failed: "},
		{errors.New("no certificate for host"), false, "TLS with the client failed: no certificate"},
	} {
		text, refused := Describe(c.err, "/ca.pem")
		if refused != c.refused || !strings.Contains(text, c.text) || strings.Contains(text, "MAC") {
			t.Errorf("%v: %v %s", c.err, refused, text)
		}
		if refused != strings.HasPrefix(text, Prefix) || refused && !strings.Contains(text, "/ca.pem") {
			t.Errorf("%v: %s", c.err, text)
		}
	}
}

func TestLog(t *testing.T) {
	t.Parallel()
	new(Log).Add(Refusal{Host: "a:443"})
	var got []Refusal
	l := &Log{Report: func(r Refusal) { got = append(got, r) }}
	for _, r := range []Refusal{
		{captures.Process{PID: 1, Name: "curl"}, "a:443"},
		{captures.Process{PID: 2, Name: "curl"}, "a:443"},
		{captures.Process{PID: 3, Name: "curl"}, "b:443"},
		{captures.Process{PID: 4, Name: "wget"}, "a:443"},
		{captures.Process{}, "a:443"},
		{captures.Process{}, "a:443"},
	} {
		l.Add(r)
	}
	if len(got) != 4 || got[0].Process.PID != 1 {
		t.Errorf("%+v", got)
	}
	for i := range 2 * maxNoted {
		l.Add(Refusal{Host: strconv.Itoa(i)})
	}
	if len(got) != maxNoted {
		t.Errorf("%d are reported", len(got))
	}
}

// TestHangUpOfAcceptingProgram: a program that has accepted the certificate of a server is not reported when it closes a
// connection during a later handshake, but it is when it sends an alert.
func TestHangUpOfAcceptingProgram(t *testing.T) {
	t.Parallel()
	var got []Refusal
	l := &Log{Report: func(r Refusal) { got = append(got, r) }}
	curl, wget := Refusal{captures.Process{PID: 1, Name: "curl"}, "a:443"}, Refusal{captures.Process{PID: 2, Name: "wget"}, "a:443"}
	// The program is known only after the connection that it closed.
	l.ExpectAccepted("a:443")
	l.AddHangUp(curl)
	l.NoteAccepted(curl)
	l.AddHangUp(curl)
	l.AddHangUp(Refusal{Host: "a:443"})
	if len(got) != 0 {
		t.Errorf("reported %+v", got)
	}
	l.ExpectAccepted("a:443")
	l.ExpectAccepted("a:443")
	l.AddHangUp(wget)
	l.NoteAccepted(curl)
	if len(got) != 0 {
		t.Errorf("reported %+v", got)
	}
	l.NoteAccepted(curl)
	l.Add(curl)
	if len(got) != 2 {
		t.Errorf("reported %+v", got)
	}
}
