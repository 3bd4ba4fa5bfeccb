package oracle

import (
	"context"

	"unwire/replay/probe"
	"unwire/replay/probe/es"
	"unwire/replay/probe/golang"
)

// verifyMethod checks the definition of a method's request against the server's parser.
//
// Shape: every message ends with bytes that no parser accepts, so that no handler gets one. A message
// type is verified once, at its first occurrence; Options.Depth levels are verified.
// Limits: Options.Budget, Rate and Timeout; 3,000 fields.
// Errors: those of Run.
//
// Source: replay/probe/README.md#verify
func verifyMethod(ctx context.Context, o probe.VerifyOptions) (*probe.Verification, error) {
	return probe.Verify(ctx, &o, es.FirstVerification, verify)
}

// verify continues a verification with the package for the server's runtime, which is known from the
// first response.
func verify(ctx context.Context, c *probe.Client, o *probe.VerifyOptions, d *probe.Definition, res *probe.Result) error {
	var err error
	switch res.Runtime {
	case probe.ES1, probe.ES2:
		err = es.Verify(ctx, c, o, d, res)
	case probe.ConnectGo, probe.GRPCGo:
		err = golang.Verify(ctx, c, d, res)
	default:
		res.Note("the server's answers do not contain the error messages of its parser, so unwire reports no fields")
	}
	if err != nil {
		return err
	}
	return verifyNames(ctx, c, o, d, res)
}

// A VerifyPlan describes the first requests of a verification, before the server's runtime is known.
type VerifyPlan struct {
	// URL is the URL to which requests would be sent.
	URL string `json:"url"`
	// Request is the full name of the request's definition.
	Request string `json:"request"`
	// Fields is the number of fields to be verified.
	Fields int `json:"fields"`
	// Headers are the headers of every request, without secrets.
	Headers []string `json:"headers"`
	// Body is the body of the first request.
	Body []byte `json:"body"`
	// Steps are the steps of the verification.
	Steps []step `json:"steps"`
	// Budget is the largest number of requests that may be sent.
	Budget int `json:"budget"`
	// Rate is the largest number of requests per second; 0 means no limit.
	Rate float64 `json:"rate"`
	// Live means that the server is on another machine.
	Live bool `json:"live"`
	// Effects describes which requests could run the RPC handler.
	Effects []string `json:"effects"`
}

// newVerifyPlan describes the requests that verifyMethod would send, and sends nothing.
//
// Errors: outbound.ErrRefused; invalid options.
func newVerifyPlan(o *probe.VerifyOptions) (*VerifyPlan, error) {
	p, err := NewPlan(&o.Options)
	if err != nil {
		return nil, err
	}
	d := o.Definition()
	esRequests := "1 or 2 if the definitions are right, and up to 4 for each wrong field"
	if o.Refine {
		esRequests += "; with protobuf-es 2 one more for each string"
	}
	return &VerifyPlan{
		URL: p.URL, Request: string(o.Request.FullName()), Fields: len(d.Fields), Headers: p.Headers, Body: es.FirstVerification(o, d),
		Budget: p.Budget, Rate: p.Rate, Live: p.Live, Effects: p.Effects,
		Steps: []step{
			{probe.ES1, esRequests, "the wire type of every field and whether it is repeated; with protobuf-es 2 also whether it is string or bytes"},
			{probe.ConnectGo, "about 1 for each string and message, 5 for each repeated number, and 5 for each message with other fields", "strings, messages and repeated numbers; for bytes and for numbers that are not repeated, only which types they do not have"},
		},
	}, nil
}
