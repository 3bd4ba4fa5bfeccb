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

// maxSeen is how many exchanges of a method are looked into for wire types.
const maxSeen = 50

// Methods are the methods of a capture that can be verified.
type Methods struct {
	// Exchanges counts the exchanges that were found.
	Exchanges int

	// Unknown are methods that are left out: the definitions do not know their
	// requests, or they cannot be asked about.
	Unknown []string

	list     []*capturedMethod
	byMethod map[string]*capturedMethod

	// looked counts the exchanges that were looked into, by path.
	looked map[string]int
}

// A capturedMethod is a method of a capture whose request the definitions know.
type capturedMethod struct {
	exchange int64
	method   string
	captured *url.URL
	request  protoreflect.MessageDescriptor

	// seen is what requests that were accepted show of fields, by path.
	seen map[string]probe.Hint
}

// FindMethods finds the methods of a capture, or of one exchange; 0 is all of them.
//
// Limits: 50 exchanges of a method are looked into.
// Errors: of reading the capture.
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
			continue // it has no method
		}
		m.Exchanges++
		if err := m.addExchange(ctx, src, s, row); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// addExchange looks into an exchange, unless enough of its method were looked into.
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

// Len is how many methods can be verified.
func (m *Methods) Len() int { return len(m.list) }

// Local reports whether all of them were captured of servers on this machine.
func (m *Methods) Local() bool {
	for _, c := range m.list {
		if outbound.CheckTarget(c.captured, false, nil) != nil {
			return false
		}
	}
	return true
}

// MethodsOptions say how the methods of a capture are verified.
type MethodsOptions struct {
	// Options are those of each verification. Budget is for all of them, To is the
	// server; nil is where each was captured.
	Options probe.Options

	// Replay has the credentials for headers that were redacted.
	Replay replay.Options

	// PlanOnly makes the plans, and sends nothing.
	PlanOnly bool

	// Planned, if set, is called with the plan of each method before it is asked about.
	Planned func(*VerifyPlan) error

	// Verified, if set, is called with what came of each.
	Verified func(*probe.Verification) error

	// Skipped, if set, is called with each method that was not asked about, and why.
	Skipped func(method, why string)
}

// A summary is what the verification of several methods came to.
type summary struct {
	// Answered says that a server reported something of its parser, or that a plan was
	// made.
	Answered bool

	// Finding says that something was contradicted, or not asked to its end.
	Finding bool
}

// VerifyMethods verifies methods one after the other. What stops one on another
// machine stops all.
//
// Errors: those of Run; those of the callbacks, which end it.
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

// A methodsRun is what the verification of several methods has in common.
type methodsRun struct {
	MethodsOptions
	src captures.Source
	sum summary

	// left is the budget that is left.
	left int

	// stopped is why no other method is asked about; "" if they are.
	stopped string
}

func (r *methodsRun) skip(c *capturedMethod, why string) {
	r.sum.Finding = true
	if r.Skipped != nil {
		r.Skipped(c.method, why)
	}
}

// verify asks about one method, or says what would be asked.
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
		// What one method hears counts for all.
		r.stopped = v.Stopped
	}
	return nil
}

// optionsFor are the options for a method, with what its exchange shows.
func (r *methodsRun) optionsFor(ctx context.Context, c *capturedMethod) (*probe.VerifyOptions, error) {
	o := &probe.VerifyOptions{Options: r.Options, Request: c.request}
	o.Method, o.Budget = c.method, r.left
	if o.To == nil {
		o.To = &url.URL{Scheme: c.captured.Scheme, Host: c.captured.Host}
	}
	if c.captured.Hostname() == o.To.Hostname() {
		// another server may take what this one did not
		o.Seen = c.seen
	}
	return o, o.FromCapture(ctx, r.src, c.exchange, r.Replay)
}
