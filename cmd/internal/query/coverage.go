package query

import (
	"context"

	"unwire/captures/profile"
	"unwire/decode"
	"unwire/schema"
	"unwire/schema/check"
)

// A Coverage measures how far definitions explain the messages in captures, which are added one after the
// other.
type Coverage struct {
	// checker compares messages with the definitions.
	checker *check.Checker

	// file is the path of the capture that is being added.
	file string

	// Exchanges is the number of exchanges that were added.
	Exchanges int
}

// NewCoverage returns an empty Coverage for definitions. The profile, which may be nil, tells how
// conversations are split over several calls.
func NewCoverage(defs *schema.Schema, p *profile.Profile) *Coverage {
	c := &Coverage{}
	c.checker = check.NewChecker(defs, check.Options{Profile: p, Address: func(ex *decode.Exchange, f *decode.Frame, part bool) string {
		return FrameAddress(c.file, ex, f, part).String()
	}})
	return c
}

// Add adds the exchanges of a capture, or the one that the address names. It calls do, which may be nil,
// with each exchange.
//
// Errors: for a damaged capture, the damage, after the readable part was added.
func (c *Coverage) Add(ctx context.Context, capture *Capture, at Address, do func(*decode.Exchange)) error {
	c.file = at.File
	n, err := c.checker.AddCapture(ctx, capture.Store, at.Exchange, at.Part, do)
	c.Exchanges += n
	return err
}

// Report returns the report about all messages added so far.
func (c *Coverage) Report() *check.Report { return c.checker.Report() }

// Proposals returns the fields that were found in messages and that the definitions lack, as proposals to
// add them.
//
// Errors: those of infer.Infer.
func (c *Coverage) Proposals() ([]check.Proposal, error) { return c.checker.Proposals() }
