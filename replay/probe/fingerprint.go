package probe

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"unwire/replay/outbound"
)

// statusHTTP2Wanted is how a load balancer refuses a protocol version.
const statusHTTP2Wanted = 464

// A fingerprinter finds out by which protocol a method can be asked, and whose
// parser answers.
type fingerprinter struct {
	*Client
	res   *Result
	tried map[Protocol]bool

	// bidi says that the method is bidirectional.
	bidi bool
}

// fingerprint asks with a message that no parser takes, and finds the protocol
// by which the method is asked. What it learns, it enters in res.
//
// Shape: the payload is the first that a protobuf-es server is asked with, so
// that there it is no request of its own. The version of such a server is told
// by its JSON.
// Errors: a stopError where the method cannot be asked.
func (c *Client) fingerprint(ctx context.Context, res *Result, payload func() []byte) error {
	f := &fingerprinter{Client: c, res: res, tried: map[Protocol]bool{}}
	defer func() { res.Protocol = string(c.protocol) }()
	if c.starts {
		res.Note("the client streams, as a capture or the definitions say: the handler starts at each request, and gets no message")
		if err := c.mayStart(); err != nil {
			return err
		}
	}

	for {
		f.tried[c.protocol] = true
		message := payload()
		a, err := c.Ask(ctx, "fingerprint", message)
		switch {
		case err == ErrSize && len(payload()) < len(message):
			continue
		case err != nil:
			return err
		case a.FromParser:
			c.first, c.firstAnswer = message, a
			f.recognise(a)
			return nil
		}
		again, err := f.adapt(a)
		if err != nil {
			return err
		}
		if !again {
			return f.refused(a)
		}
	}
}

// recognise enters the runtime and what is known of the method.
func (f *fingerprinter) recognise(a *Answer) {
	f.res.Runtime = runtimeOf(a)
	switch {
	case f.bidi:
		f.res.Kind = "bidi"
	case f.protocol == connectUnary:
		f.res.Kind = "unary"
	case f.protocol == connectStream:
		f.res.Kind = "stream"
	}
	if f.protocol != connectUnary && !f.starts {
		f.res.Note("whether it is the client that streams is not told: then the handler starts at each request, and gets no message")
	}
}

// adapt changes the protocol to what an answer asks for, and reports whether that
// is to be tried.
func (f *fingerprinter) adapt(a *Answer) (again bool, err error) {
	noSuchType := a.Status == http.StatusUnsupportedMediaType
	switch {
	case !f.http2 && (a.Status == http.StatusHTTPVersionNotSupported || a.Status == statusHTTP2Wanted):
		f.res.Note(fmt.Sprintf("the method is bidirectional, as HTTP/1.1 was refused with %d: its handler starts at each request, and gets no message", a.Status))
		if err := f.mayStart(); err != nil {
			return false, err
		}
		f.starts, f.bidi = true, true
		f.transport(true)
	case f.o.Protocol != auto:
		return false, nil
	case f.protocol == connectUnary && noSuchType && strings.Contains(a.Allow, "grpc") && !strings.Contains(a.Allow, "connect+proto"):
		f.protocol = grpc
		f.transport(true)
	case f.protocol == connectUnary && noSuchType && !f.tried[connectStream]:
		f.protocol = connectStream
		if !f.starts {
			f.transport(false) // which a bidirectional method refuses
		}
	case (a.Fail != "" || noSuchType) && !f.tried[grpc]:
		f.protocol = grpc
		f.transport(true)
	default:
		return false, nil
	}
	return true, nil
}

// mayStart says whether handlers may be started, though they get no message.
func (c *Client) mayStart() error {
	if !c.o.AllowExecute && c.Remote {
		return Stop("the handler of a method whose client streams would start: that is done to another machine only if it is allowed (--allow-execute)")
	}
	return nil
}

// refused says why an answer to the fingerprint is the last.
func (f *fingerprinter) refused(a *Answer) error {
	switch {
	case a.Reason.Unsent():
		return &stopError{why: "no answer: nothing was sent: " + a.Fail, reason: a.Reason}
	case a.Fail != "":
		return &stopError{why: "no answer: " + a.Fail, reason: outbound.NoAnswer}
	case a.Status == http.StatusNotFound && a.Code == "" || a.Code == "unimplemented":
		return Stop("the server has no such method: %s", a.Brief())
	}
	f.res.Note("the server answered " + a.Brief())
	switch {
	case ofHandlers[a.Code]:
		f.res.Note("no parser answers so: the handler may have run")
	case a.Status == http.StatusOK && strings.HasPrefix(a.Type, "text/"):
		f.res.Note("that is no answer of Connect or gRPC: is --to the server's address?")
	}
	return nil
}

// levelsExceeded is how protobuf-es 2 gives up in an unknown group.
const levelsExceeded = "maximum recursion depth reached"

func runtimeOf(a *Answer) Runtime {
	s := a.Text
	switch {
	case strings.Contains(s, "illegal tag") && strings.Contains(s, "wire type"):
		if a.Code == "invalid_argument" {
			return ES1
		}
		return ES2
	// nothing that was asked about is there
	case strings.Contains(s, levelsExceeded):
		return ES2
	// Generated code does not write "proto:" before its refusal of text.
	case strings.Contains(s, "grpc:") && (strings.Contains(s, "proto:") || strings.Contains(s, "unmarshal")):
		return GRPCGo
	case strings.Contains(s, "unmarshal message") || strings.Contains(s, "proto:"):
		return ConnectGo
	}
	return Unknown
}
