package probe

import (
	"context"
	"errors"
)

// Run finds out which runtime answers a method, with the message that first
// returns, and has ask enter in the Result what that runtime shows.
//
// Errors: of options; outbound.ErrRefused; of the journal; ctx's. What ends the
// probe early is no error.
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

// Verify finds out which runtime answers a method, with the message that first
// returns, and has ask decide the expectations of the definition.
//
// Errors: those of Run; o without a Request.
func Verify(ctx context.Context, o *VerifyOptions, first func(*VerifyOptions, *Definition) []byte, ask func(context.Context, *Client, *VerifyOptions, *Definition, *Result) error) (*Verification, error) {
	if o.Request == nil {
		return nil, errors.New("probe: no definition to verify")
	}
	o.Names = nil
	c, err := newClient(&o.Options)
	if err != nil {
		return nil, err
	}
	defer c.http.CloseIdleConnections()

	d, res := o.Definition(), o.newResult()
	message := first(o, d)
	if err = c.fingerprint(ctx, res, func() []byte { return message }); err == nil {
		err = ask(ctx, c, o, d, res)
	}
	out := &Verification{Method: o.Method, Request: string(o.Request.FullName())}
	return out, out.conclude(c, d, res, err)
}
