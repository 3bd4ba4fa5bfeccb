package oracle

import (
	"context"
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

// maxSeen is the number of exchanges of each method that are searched for wire types.
const maxSeen = 50

// Methods are the methods of a capture that can be verified.
type Methods struct {
	// Exchanges is the number of exchanges found in the capture.
	Exchanges int

	// Unknown are the methods that are skipped, because the definitions lack their requests or their
	// protocol cannot be probed.
	Unknown []string

	list     []*capturedMethod
	byMethod map[string]*capturedMethod

	// looked maps URL paths to the number of searched exchanges.
	looked map[string]int
}

// A capturedMethod is a method in a capture whose request type is defined.
type capturedMethod struct {
	exchange int64
	method   string
	captured *url.URL
	request  protoreflect.MessageDescriptor

	// seen has the wire types of fields in accepted requests, by path.
	seen map[string]probe.Hint
}

// FindMethods finds the methods called in a capture or, if exchange is not 0, in that exchange.
//
// Limits: it searches 50 exchanges of each method. Errors: errors of reading the capture.
func FindMethods(ctx context.Context, src captures.Capture, s *schema.Schema, exchange int64) (*Methods, error) {
	m := &Methods{byMethod: map[string]*capturedMethod{}, looked: map[string]int{}}
	for row, err := range src.Exchanges(ctx) {
		if err != nil {
			return nil, err
		}
		if exchange != 0 && row.ID != exchange {
			continue
		}
		if err := replay.CheckTransport(row); err != nil {
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

// addExchange searches an exchange, unless enough of its method were searched.
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

func canAsk(p decode.Protocol) bool {
	switch p {
	case decode.ConnectUnary, decode.ConnectGet, decode.ConnectStream, decode.GRPC, decode.GRPCWeb:
		return true
	}
	return false
}

// Len returns the number of methods that can be verified.
func (m *Methods) Len() int { return len(m.list) }

// Local reports whether all of them were captured from servers on this machine.
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
	// Options are for each verification, except that Budget is for all together. If To is nil, each
	// method is verified on the server that it was captured from.
	Options probe.Options

	// Replay has the credentials that replace redacted headers.
	Replay replay.Options

	// AskNames has the same meaning as in probe.VerifyOptions.
	AskNames bool

	// PlanOnly makes plans only, and sends nothing.
	PlanOnly bool

	// Planned, if set, is called with the plan of each method before it is probed.
	Planned func(*VerifyPlan) error

	// Verified, if not nil, is called with the result for each method.
	Verified func(*probe.Verification) error

	// Skipped, if set, is called for each method that was not probed, with the reason.
	Skipped func(method, why string)
}

// A summary summarises the verification of several methods.
type summary struct {
	// Answered means that at least one server's parser was recognised, or that a plan was made.
	Answered bool

	// Finding means that something was contradicted, or that a verification ended early.
	Finding bool
}

// VerifyMethods verifies the definitions of methods, one method after the other. If a server on another
// machine stops the verification of one method, all others are stopped too.
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

// A methodsRun is the state that the probes of several methods share, such as the remaining budget of
// requests.
type methodsRun struct {
	MethodsOptions
	src captures.Source
	sum summary

	// left is the remaining number of requests in the budget.
	left int

	// stopped is the reason why no further method is probed; "" if there is none.
	stopped string
}

func (r *methodsRun) skip(c *capturedMethod, why string) {
	r.sum.Finding = true
	if r.Skipped != nil {
		r.Skipped(c.method, why)
	}
}

// verify verifies one method, or makes its plan.
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

// optionsFor returns the options for a method, completed from its exchange.
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
