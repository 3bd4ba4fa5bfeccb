package probe

import (
	"context"
	"errors"
)

// Run probes a method. It sends the message that the function first returns, in order to identify the
// protobuf runtime of the server, and then calls ask, which sends further requests and adds what their
// errors reveal to the Result.
//
// Errors: invalid options; outbound.ErrRefused; errors of the journal; that of ctx. A probe that ends
// early is not an error.
func Run(ctx context.Context, o *Options, first func(*Client, *Options) []byte, ask func(context.Context, *Client, *Options, *Result) error) (*Result, error) {
	c, err := newClient(o)
	if err != nil {
		return nil, err
	}
	defer c.http.CloseIdleConnections()

	res := o.newResult()
	if err = c.fingerprint(ctx, res, func() []byte { return first(c, o) }); err == nil {
		err = ask(ctx, c, o, res)
	}
	return res, res.conclude(c, o.Questions, err)
}

// Verify verifies the definition of a method's request. It sends the message that first returns, in
// order to identify the protobuf runtime of the server, and then calls ask, which sends further
// requests and decides the expectations of the definition.
//
// Errors: those of Run; o without a Request.
func Verify(ctx context.Context, o *VerifyOptions, first func(*VerifyOptions, *Definition) []byte, ask func(context.Context, *Client, *VerifyOptions, *Definition, *Result) error) (*Verification, error) {
	if o.Request == nil {
		return nil, errors.New("probe: there is no definition to verify")
	}
	o.Names = nil
	c, err := newClient(&o.Options)
	if err != nil {
		return nil, err
	}
	defer c.http.CloseIdleConnections()

	c.required = requiredNumbers(o.Request)
	d, res := o.Definition(), o.newResult()
	message := first(o, d)
	if err = c.fingerprint(ctx, res, func() []byte { return message }); err == nil {
		err = ask(ctx, c, o, d, res)
	}
	out := &Verification{Method: o.Method, Request: string(o.Request.FullName())}
	return out, out.conclude(c, d, res, err)
}
