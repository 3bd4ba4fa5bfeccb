package probe

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"unwire/replay/outbound"
)

// statusHTTP2Wanted is the HTTP status with which some load balancers refuse HTTP/1.1.
const statusHTTP2Wanted = 464

// A fingerprinter determines the protocol of a method, and the library that parses its requests.
type fingerprinter struct {
	// Client sends the requests.
	*Client

	// res receives the protocol and the runtime.
	res *Result

	// tried are the protocols that were tried.
	tried map[Protocol]bool

	// bidi means that the method streams in both directions.
	bidi bool
}

// fingerprint sends the message that payload returns, which no parser accepts, and tries protocols
// until a parser responds. It stores protocol and runtime in res.
//
// Shape: the message is also the first test for a protobuf-es server, so that the fingerprint costs no
// request there. The version of protobuf-es follows from its JSON errors.
// Errors: a stopError if the method cannot be probed.
func (c *Client) fingerprint(ctx context.Context, res *Result, payload func() []byte) error {
	f := &fingerprinter{Client: c, res: res, tried: map[Protocol]bool{}}
	defer func() { res.Protocol = string(c.protocol) }()
	if c.starts {
		res.Note("the method is client-streaming, so the server started the method's handler at each request; the handler got no message")
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

		// The answer is not from a parser: its status or headers may name another protocol.
		again, err := f.adapt(a)
		if err != nil {
			return err
		}
		if !again {
			return f.refused(a)
		}
	}
}

// recognise determines the server's runtime and the kind of method from a parser's response.
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
		f.res.Note("unwire does not know whether the method is client-streaming; if it is, the server started the method's handler at each request, without a message")
	}
}

// adapt chooses another protocol according to a response, and reports whether to send the message
// again.
func (f *fingerprinter) adapt(a *Answer) (again bool, err error) {
	noSuchType := a.Status == http.StatusUnsupportedMediaType
	switch {
	// A bidirectional method needs HTTP/2, and its handler starts before the first message.
	case !f.http2 && (a.Status == http.StatusHTTPVersionNotSupported || a.Status == statusHTTP2Wanted):
		f.res.Note(fmt.Sprintf("the method is bidirectional, because the server rejected HTTP/1.1 with status %d; the server started its handler at each request, without a message", a.Status))
		if err := f.mayStart(); err != nil {
			return false, err
		}
		f.starts, f.bidi = true, true
		f.transport(true)
	// The user's choice of protocol is not overridden.
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
	case (a.Fail != "" || noSuchType || a.isGRPC()) && !f.tried[grpc]:
		f.protocol = grpc
		f.transport(true)
	default:
		return false, nil
	}
	return true, nil
}

// mayStart returns an error unless requests may start the RPC handler, which gets no message then.
func (c *Client) mayStart() error {
	if !c.o.AllowExecute && c.Remote {
		return Stop("the RPC handler of a client-streaming method starts with each request; on another machine, probe does this only with --allow-execute")
	}
	return nil
}

// refused returns the error that explains a response after which no other protocol is tried.
func (f *fingerprinter) refused(a *Answer) error {
	switch {
	case a.Reason.Unsent():
		return &stopError{why: "not sent: " + a.Fail, reason: a.Reason}
	case a.Fail != "":
		return &stopError{why: "no answer: " + a.Fail, reason: outbound.NoAnswer}
	case a.Status == http.StatusNotFound && a.Code == "" || a.Code == "unimplemented":
		return Stop("the server has no such method: %s", a.Brief())
	}
	f.res.Note("the server answered " + a.Brief())
	switch {
	case a.Code == twirpNoRoute && strings.Contains(a.Message, "no handler"):
		return Stop("the server, which uses Twirp, has no such method: %s", a.Brief())
	case a.Code == twirpNoRoute:
		f.res.Note("the server uses Twirp, whose error messages do not reveal fields")
	case readsJSON.MatchString(a.Text):
		f.res.Note("the server parses all messages as JSON: it may be a gateway, such as grpc-gateway, in front of a gRPC server that can be probed directly")
	case ofHandlers[a.Code]:
		f.res.Note("the answer is not a parse error, so the server may have executed the method")
	case a.Status == http.StatusOK && strings.HasPrefix(a.Type, "text/"):
		f.res.Note("the answer is neither Connect nor gRPC: check that --to is the URL of the RPC server")
	}
	return nil
}

// twirpNoRoute is Twirp's error code for an unknown path, method or content type.
const twirpNoRoute = "bad_route"

// readsJSON matches the errors of a JSON parser that received a protobuf message.
var readsJSON = regexp.MustCompile(`invalid character .* looking for beginning of value|syntax error \(line 1:1\)`)

// levelsExceeded is the error of protobuf-es 2 for unknown groups that are nested too deeply.
const levelsExceeded = "maximum recursion depth reached"

// runtimeOf determines the server's runtime from the error in a response.
func runtimeOf(a *Answer) Runtime {
	s := a.Text
	switch {
	case strings.Contains(s, "illegal tag") && strings.Contains(s, "wire type"):
		if a.Code == "invalid_argument" {
			return ES1
		}
		return ES2
	// None of the fields that were asked about exists.
	case strings.Contains(s, levelsExceeded):
		return ES2
	// Generated code does not write "proto:" before its error about invalid UTF-8.
	case strings.Contains(s, "grpc:") && (strings.Contains(s, "proto:") || strings.Contains(s, "unmarshal")):
		return GRPCGo
	case strings.Contains(s, "unmarshal message") || strings.Contains(s, "proto:"):
		return ConnectGo
	}
	return Unknown
}
