package oracle

import (
	"context"

	"unwire/replay/probe"
	"unwire/replay/probe/es"
	"unwire/replay/probe/golang"
)

// verifyMethod holds the definition of a method's request against what the server's
// parser says.
//
// Shape: every message that it sends ends with bytes that no parser takes, so
// that no handler gets one. A message type is asked about once, where it is
// found first; Options.Depth levels are followed.
// Limits: Options' Budget, Rate and Timeout; 3,000 fields.
// Errors: those of Run.
//
// Source: replay/probe/README.md#verify
func verifyMethod(ctx context.Context, o probe.VerifyOptions) (*probe.Verification, error) {
	return probe.Verify(ctx, &o, es.FirstVerification, verify)
}

// verify asks by the package for the runtime that answers.
func verify(ctx context.Context, c *probe.Client, o *probe.VerifyOptions, d *probe.Definition, res *probe.Result) error {
	switch res.Runtime {
	case probe.ES1, probe.ES2:
		return es.Verify(ctx, c, o, d, res)
	case probe.ConnectGo, probe.GRPCGo:
		return golang.Verify(ctx, c, d, res)
	}
	res.Note("the oracle is off: the answers do not say what the parser met, so nothing is claimed")
	return nil
}

// A VerifyPlan says what verifyMethod would send first, before it is known which
// runtime answers.
type VerifyPlan struct {
	URL     string   `json:"url"`
	Request string   `json:"request"`
	Fields  int      `json:"fields"`
	Headers []string `json:"headers"` // secrets are left out
	Body    []byte   `json:"body"`    // the first message
	Steps   []step   `json:"steps"`
	Budget  int      `json:"budget"`
	Rate    float64  `json:"rate"`
	Live    bool     `json:"live"`
	Effects []string `json:"effects"`
}

// newVerifyPlan says what verifyMethod would do, and sends nothing.
//
// Errors: replay.ErrRefused; of options.
func newVerifyPlan(o *probe.VerifyOptions) (*VerifyPlan, error) {
	p, err := NewPlan(&o.Options)
	if err != nil {
		return nil, err
	}
	d := o.Definition()
	esRequests := "one or two if the definition is right, and up to four a field that is not"
	if o.Refine {
		esRequests += "; with protobuf-es 2 one more a text"
	}
	return &VerifyPlan{
		URL: p.URL, Request: string(o.Request.FullName()), Fields: len(d.Fields), Headers: p.Headers, Body: es.FirstVerification(o, d),
		Budget: p.Budget, Rate: p.Rate, Live: p.Live, Effects: p.Effects,
		Steps: []step{
			{probe.ES1, esRequests, "class and label of every field; text from bytes in protobuf-es 2"},
			{probe.ConnectGo, "about one a text and message, five a list of numbers, five a message for the rest", "text, messages, lists of numbers; of bytes and single numbers what they are not"},
		},
	}, nil
}
