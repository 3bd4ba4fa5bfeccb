package probe

import (
	"context"
	"net/http"
	"strings"
)

// A print is what the first answers tell of a server and a method.
type print struct {
	runtime Runtime
	kind    string
	notes   []string
}

// statusHTTP2Wanted is how a load balancer refuses a protocol version.
const statusHTTP2Wanted = 464

// fingerprint asks with a message that no parser takes, and finds the protocol
// by which the method is asked.
//
// Shape: the message is the first that a protobuf-es server is asked with, so
// that there it is no request of its own. The version of such a server is told
// by its JSON (see requestType).
// Errors: a stopError where the method cannot be asked.
func fingerprint(ctx context.Context, c *client, message []byte) (print, error) {
	p := print{runtime: Unknown}
	tried := map[Protocol]bool{}
	for {
		tried[c.protocol] = true
		a, err := c.ask(ctx, "fingerprint", message)
		if err != nil {
			return p, err
		}
		switch {
		case a.Status == statusHTTP2Wanted && !c.http.Protocols.UnencryptedHTTP2() && c.url.Scheme == "http":
			c.transport(true)
			continue
		case a.parser:
			c.first, c.firstAnswer = message, a
			p.runtime = runtimeOf(a, c.protocol)
			p.kind = map[Protocol]string{ConnectUnary: "unary", ConnectStream: "stream"}[c.protocol]
			return p, nil
		case c.o.Protocol != Auto:
		case c.protocol == ConnectUnary && a.Status == http.StatusUnsupportedMediaType && !tried[ConnectStream]:
			if !strings.Contains(a.Allow, "connect+proto") && strings.Contains(a.Allow, "grpc") {
				c.protocol = GRPC
				c.transport(true)
				continue
			}
			c.protocol = ConnectStream
			continue
		case c.protocol == ConnectStream && a.Status == http.StatusHTTPVersionNotSupported && !c.http.Protocols.UnencryptedHTTP2():
			p.notes = append(p.notes, "the method is bidirectional: HTTP/1.1 was refused with 505")
			c.transport(true)
			continue
		case (a.Fail != "" || a.Status == http.StatusUnsupportedMediaType) && !tried[GRPC]:
			c.protocol = GRPC
			c.transport(true)
			continue
		}
		return p, p.refused(a)
	}
}

// refused says why an answer to the fingerprint is the last.
func (p *print) refused(a *answer) error {
	switch {
	case a.Fail != "":
		return &stopError{"no answer: " + a.Fail}
	case a.Status == http.StatusNotFound || a.Code == "unimplemented":
		return &stopError{"the server has no such method: " + a.brief()}
	}
	p.notes = append(p.notes, "the server answered "+a.brief())
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
	case strings.Contains(s, "grpc:") && strings.Contains(s, "proto:"):
		return GRPCGo
	case strings.Contains(s, "unmarshal message") || strings.Contains(s, "proto:"):
		return ConnectGo
	}
	return Unknown
}
