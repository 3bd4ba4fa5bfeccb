package probe

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"unwire/replay/outbound"
)

// A print is what the first answers tell of a server and a method.
type print struct {
	runtime Runtime
	kind    string
	bidi    bool
	notes   []string
}

// statusHTTP2Wanted is how a load balancer refuses a protocol version.
const statusHTTP2Wanted = 464

// fingerprint asks with a message that no parser takes, and finds the protocol
// by which the method is asked.
//
// Shape: the payload is the first that a protobuf-es server is asked with, so
// that there it is no request of its own. The version of such a server is told
// by its JSON (see requestType).
// Errors: a stopError where the method cannot be asked.
func fingerprint(ctx context.Context, c *client, payload func() []byte) (print, error) {
	p := print{runtime: Unknown}
	if c.starts {
		p.notes = append(p.notes, "the client streams, as a capture or the definitions say: the handler starts at each request, and gets no message")
		if err := c.mayStart(); err != nil {
			return p, err
		}
	}
	tried := map[Protocol]bool{}
	for {
		tried[c.protocol] = true
		message := payload()
		a, err := c.ask(ctx, "fingerprint", message)
		if err == errSize && len(payload()) < len(message) {
			continue
		}
		if err != nil {
			return p, err
		}
		switch {
		case a.parser:
			c.first, c.firstAnswer = message, a
			p.runtime = runtimeOf(a, c.protocol)
			p.kind = map[Protocol]string{ConnectUnary: "unary", ConnectStream: "stream"}[c.protocol]
			if p.bidi {
				p.kind = "bidi"
			}
			if c.protocol != ConnectUnary && !c.starts {
				p.notes = append(p.notes, "whether it is the client that streams is not told: then the handler starts at each request, and gets no message")
			}
			return p, nil
		case !c.http2 && (a.Status == http.StatusHTTPVersionNotSupported || a.Status == statusHTTP2Wanted):
			p.notes = append(p.notes, fmt.Sprintf("the method is bidirectional, as HTTP/1.1 was refused with %d: its handler starts at each request, and gets no message", a.Status))
			if err := c.mayStart(); err != nil {
				return p, err
			}
			c.starts, p.bidi = true, true
			c.transport(true)
			continue
		case c.o.Protocol != Auto:
		case c.protocol == ConnectUnary && a.Status == http.StatusUnsupportedMediaType && strings.Contains(a.Allow, "grpc") && !strings.Contains(a.Allow, "connect+proto"):
			c.protocol = GRPC
			c.transport(true)
			continue
		case c.protocol == ConnectUnary && a.Status == http.StatusUnsupportedMediaType && !tried[ConnectStream]:
			c.protocol = ConnectStream
			if !c.starts {
				c.transport(false) // which a bidirectional method refuses
			}
			continue
		case (a.Fail != "" || a.Status == http.StatusUnsupportedMediaType) && !tried[GRPC]:
			c.protocol = GRPC
			c.transport(true)
			continue
		}
		return p, p.refused(a)
	}
}

// mayStart says whether handlers may be started, though they get no message.
func (c *client) mayStart() error {
	if !c.o.AllowExecute && outbound.CheckTarget(c.url, false, nil) != nil {
		return stop("the handler of a method whose client streams would start: that is done to another machine only if it is allowed (--allow-execute)")
	}
	return nil
}

// refused says why an answer to the fingerprint is the last.
func (p *print) refused(a *answer) error {
	switch {
	case a.Reason.Unsent():
		return &stopError{why: "no answer: nothing was sent: " + a.Fail, reason: a.Reason}
	case a.Fail != "":
		return &stopError{why: "no answer: " + a.Fail, reason: outbound.NoAnswer}
	case a.Status == http.StatusNotFound && a.Code == "" || a.Code == "unimplemented":
		return stop("the server has no such method: %s", a.brief())
	}
	p.notes = append(p.notes, "the server answered "+a.brief())
	switch {
	case ofHandlers[a.Code]:
		p.notes = append(p.notes, "no parser answers so: the handler may have run")
	case a.Status == http.StatusOK && strings.HasPrefix(a.Type, "text/"):
		p.notes = append(p.notes, "that is no answer of Connect or gRPC: is --to the server's address?")
	}
	return nil
}

func runtimeOf(a *answer, p Protocol) Runtime {
	s := a.message
	switch {
	case strings.Contains(s, "illegal tag") && strings.Contains(s, "wire type"):
		if a.Code == "invalid_argument" {
			return ES1
		}
		return ES2
	case strings.Contains(s, levelsExceeded): // nothing that was asked about is there
		return ES2
	// Generated code does not write "proto:" before its refusal of text.
	case strings.Contains(s, "grpc:") && (strings.Contains(s, "proto:") || strings.Contains(s, "unmarshal")):
		return GRPCGo
	case strings.Contains(s, "unmarshal message") || strings.Contains(s, "proto:"):
		return ConnectGo
	}
	return Unknown
}
