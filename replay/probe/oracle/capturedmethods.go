package oracle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/decode"
	"unwire/replay"
	"unwire/replay/outbound"
	"unwire/replay/probe"
	"unwire/schema"
)

// maxSeen limits how many exchanges of each method are examined for wire types.
const maxSeen = 50

// A Methods has the methods called in a capture whose request definitions can be verified on their
// servers.
type Methods struct {
	// Exchanges is the number of exchanges found in the capture.
	Exchanges int

	// Unknown are the methods that are skipped, because the definitions lack their requests or their
	// protocol cannot be probed.
	Unknown []string

	// list are the methods that can be verified, in the order of their first call.
	list []*capturedMethod

	// byMethod has the elements of list by URL path.
	byMethod map[string]*capturedMethod

	// looked is the number of examined exchanges by URL path.
	looked map[string]int
}

// A capturedMethod is a method in a capture whose request type is defined.
type capturedMethod struct {
	// exchange is the number of the first exchange of the method.
	exchange int64

	// method is "/package.Service/Method".
	method string

	// captured is the URL of the captured call.
	captured *url.URL

	// request is the defined type of the request.
	request protoreflect.MessageDescriptor

	// seen has the wire types of fields in accepted requests, by path.
	seen map[string]probe.Hint
}

// FindMethods finds the methods that are called in a capture and whose requests s defines. If exchange
// is not 0, only that exchange is examined.
//
// Limits: it examines 50 exchanges of each method.
// Errors: errors of reading the capture.
func FindMethods(ctx context.Context, src captures.Capture, s *schema.Schema, exchange int64) (*Methods, error) {
	m := &Methods{byMethod: map[string]*capturedMethod{}, looked: map[string]int{}}
	for row, err := range src.Exchanges(ctx) {
		if err != nil {
			return nil, err
		}
		if exchange != 0 && row.ID != exchange {
			continue
		}
		if err := checkTransport(row); err != nil {
			if exchange != 0 {
				return nil, err
			}
			// it is not a call
			continue
		}
		m.Exchanges++
		if err := m.addExchange(ctx, src, s, row); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// ErrNotRequest reports an exchange that is not a request with an answer, so that no request can ask about
// its messages.
var ErrNotRequest = errors.New("cannot be verified")

// checkTransport refuses exchanges that are not an HTTP request with an answer.
//
// Errors: ErrNotRequest, with the exchange and its transport.
func checkTransport(ex *captures.Exchange) error {
	what := ""
	switch {
	case ex.Transport == captures.WebSocket:
		what = "it is a WebSocket"
	case ex.Transport != captures.HTTP:
		what = "it is a connection without HTTP (" + string(ex.Transport) + ")"
	case ex.ChangedProtocol() == string(captures.WebSocket):
		what = "it is the handshake of a WebSocket"
	default:
		return nil
	}
	return fmt.Errorf("exchange %d %w: %s, and verify sends only requests of Connect, gRPC and gRPC-Web", ex.ID, ErrNotRequest, what)
}

// addExchange examines the exchange row, unless enough exchanges of its method were examined.
func (m *Methods) addExchange(ctx context.Context, src captures.Source, s *schema.Schema, row *captures.Exchange) error {
	u, err := url.Parse(row.URL)
	if err != nil || m.looked[u.Path] >= maxSeen {
		return nil
	}
	m.looked[u.Path]++
	ex, err := decode.Decode(ctx, src, row.ID, decode.Options{})
	if err != nil {
		return err
	}
	md := s.FrameType(ex.Call, captures.Up)
	method := "/" + ex.Service + "/" + ex.RPC
	if md == nil || !canAsk(ex.Protocol) {
		if ex.RPC != "" && m.looked[u.Path] == 1 {
			m.Unknown = append(m.Unknown, method)
		}
		return nil
	}

	c := m.byMethod[method]
	if c == nil {
		c = &capturedMethod{exchange: row.ID, method: method, captured: u, request: md, seen: map[string]probe.Hint{}}
		m.byMethod[method] = c
		m.list = append(m.list, c)
	}

	// Only requests that the server accepted show what it reads.
	for i := range ex.Frames {
		if fr := &ex.Frames[i]; fr.Up() && fr.End == nil && ex.Code == "ok" && ex.Codec == "proto" {
			probe.SeenIn(c.seen, fr.Data, md)
		}
	}
	return nil
}

// canAsk reports whether a probe can send requests in the protocol p.
func canAsk(p decode.Protocol) bool {
	switch p {
	case decode.ConnectUnary, decode.ConnectGet, decode.ConnectStream, decode.GRPC, decode.GRPCWeb:
		return true
	}
	return false
}

// Len returns the number of methods that can be verified.
func (m *Methods) Len() int { return len(m.list) }

// Local reports whether all methods were captured from servers on this machine.
func (m *Methods) Local() bool {
	for _, c := range m.list {
		if outbound.CheckTarget(c.captured, false, nil) != nil {
			return false
		}
	}
	return true
}

// MethodsOptions describe how the methods of a capture are verified.
type MethodsOptions struct {
	// Options are for each verification, except that Budget applies to all together. If To is nil, each
	// method is verified on the server from which it was captured.
	Options probe.Options

	// Replay has the credentials that replace redacted headers.
	Replay replay.Options

	// AskNames also verifies the names and types of fields, by the errors of the server's JSON parser.
	AskNames bool

	// PlanOnly means that only plans are made, and nothing is sent.
	PlanOnly bool

	// Planned, if set, is called with the plan of each method before it is probed.
	Planned func(*VerifyPlan) error

	// Verified, if not nil, is called with the result for each method.
	Verified func(*probe.Verification) error

	// Skipped, if set, is called for each method that was not probed, with the reason.
	Skipped func(method, why string)
}

// A summary is the outcome of verifying several methods.
type summary struct {
	// Answered means that at least one server's parser was recognised, or that a plan was made.
	Answered bool

	// Finding means that something was contradicted, or that a verification ended early.
	Finding bool
}

// VerifyMethods verifies the definitions of the methods m, one method after the other. If a server on
// another machine stops the verification of one method, all others are stopped too.
//
// Errors: the errors of Run and of the callbacks; each ends the run.
func VerifyMethods(ctx context.Context, src captures.Source, m *Methods, o MethodsOptions) (summary, error) {
	r := &methodsRun{MethodsOptions: o, src: src, left: o.Options.Budget}
	for _, c := range m.list {
		switch {
		case r.stopped != "":
			r.skip(c, r.stopped)
		case r.left <= 0:
			r.skip(c, "the budget is used up")
		default:
			if err := r.verify(ctx, c); err != nil {
				return r.sum, err
			}
		}
	}
	return r.sum, nil
}

// A methodsRun is the state of VerifyMethods.
type methodsRun struct {
	// MethodsOptions are the options of VerifyMethods.
	MethodsOptions

	// src is the capture.
	src captures.Source

	// sum is the outcome so far.
	sum summary

	// left is the remaining number of requests in the budget.
	left int

	// stopped is the reason why no further method is probed; "" if there is none.
	stopped string
}

// skip reports that a method is not verified, with the reason.
func (r *methodsRun) skip(c *capturedMethod, why string) {
	r.sum.Finding = true
	if r.Skipped != nil {
		r.Skipped(c.method, why)
	}
}

// verify verifies one method, or only makes its plan.
func (r *methodsRun) verify(ctx context.Context, c *capturedMethod) error {
	o, err := r.optionsFor(ctx, c)
	if err != nil {
		return err
	}
	plan, err := newVerifyPlan(o)
	if err != nil {
		return err
	}
	if r.Planned != nil {
		if err := r.Planned(plan); err != nil {
			return err
		}
	}
	if r.PlanOnly {
		r.sum.Answered = true
		return nil
	}

	// All methods share one journal, which each reads from its beginning.
	if o.Journal != nil {
		if _, err := o.Journal.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}

	v, err := verifyMethod(ctx, *o)
	if err != nil {
		return err
	}
	r.left -= v.Requests - v.Resumed
	if r.Verified != nil {
		if err := r.Verified(v); err != nil {
			return err
		}
	}
	r.sum.Answered = r.sum.Answered || v.Runtime != probe.Unknown && v.Runtime != ""
	r.sum.Finding = r.sum.Finding || v.Contradicted > 0 || v.Stopped != ""
	if plan.Live {
		// A server that refuses further requests refuses them for all methods.
		r.stopped = v.Stopped
	}
	return nil
}

// optionsFor returns the options for verifying a method, completed from its captured exchange.
func (r *methodsRun) optionsFor(ctx context.Context, c *capturedMethod) (*probe.VerifyOptions, error) {
	o := &probe.VerifyOptions{Options: r.Options, Request: c.request, AskNames: r.AskNames}
	o.Method, o.Budget = c.method, r.left
	if o.To == nil {
		o.To = &url.URL{Scheme: c.captured.Scheme, Host: c.captured.Host}
	}
	if c.captured.Hostname() == o.To.Hostname() {
		// Another server may accept what this one refused.
		o.Seen = c.seen
	}
	return o, o.FromCapture(ctx, r.src, c.exchange, r.Replay)
}
