package query

import (
	"context"

	"unwire/captures/profile"
	"unwire/decode"
	"unwire/schema"
	"unwire/schema/check"
)

// A Coverage finds out how far definitions explain captures. It is for captures that
// are added one after the other.
type Coverage struct {
	checker *check.Checker
	file    string // that is being added

	// Exchanges is how many were looked at.
	Exchanges int
}

// NewCoverage returns a Coverage by definitions. The profile, which may be nil, says how
// streams are split.
func NewCoverage(defs *schema.Schema, p *profile.Profile) *Coverage {
	c := &Coverage{}
	c.checker = check.NewChecker(defs, check.Options{Profile: p, Address: func(ex *decode.Exchange, f *decode.Frame, part bool) string {
		return FrameAddress(c.file, ex, f, part).String()
	}})
	return c
}

// Add adds the exchanges of a capture that an address names. Each is given to do, which
// may be nil.
//
// Errors: of a damaged capture, after what can be read was added.
func (c *Coverage) Add(ctx context.Context, capture *Capture, at Address, do func(*decode.Exchange)) error {
	c.file = at.File
	n, err := c.checker.AddCapture(ctx, capture.Store, at.Exchange, at.Part, do)
	c.Exchanges += n
	return err
}

// Report returns what was found.
func (c *Coverage) Report() *check.Report { return c.checker.Report() }

// Proposals returns the fields that were found and that the definitions lack.
//
// Errors: those of infer.Infer.
func (c *Coverage) Proposals() ([]check.Proposal, error) { return c.checker.Proposals() }
