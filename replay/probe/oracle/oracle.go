// Package oracle asks a server what its parser knows of a request: it finds out
// which runtime answers, and asks by the package for that one: es for
// protobuf-es, golang for protobuf-go, and names for both.
//
// Run gathers what can be learnt of a method, and NewPlan reports what it would send.
// VerifyMethods checks the definitions of the requests in a capture, and can make
// the plans alone.
//
// The captured methods are those of a capture that can be verified; each is verified
// with the headers and the message of its exchange.
//
// Source: replay/probe/README.md
package oracle

import (
	"context"

	"unwire/replay/probe"
	"unwire/replay/probe/es"
	"unwire/replay/probe/golang"
	"unwire/replay/probe/names"
)

// Run asks a method's parser what it knows.
//
// Shape: what was learnt before the probe was stopped, by the server or by ctx,
// is in the Result, and Stopped says why. The same answers give the same
// requests, so a run with the journal of one that was killed goes on.
// Limits: Options' Budget, Rate and Timeout; an answer is read to 1 MiB.
// Errors: replay.ErrRefused; of options; ctx's; of the journal.
func Run(ctx context.Context, o probe.Options) (*probe.Result, error) {
	return probe.Run(ctx, &o, es.FirstMessage, ask)
}

// ask asks by the package for the runtime that answers.
func ask(ctx context.Context, c *probe.Client, o *probe.Options, res *probe.Result) error {
	switch res.Runtime {
	case probe.ES1, probe.ES2:
		err := es.Probe(ctx, c, o, res)
		if err == nil {
			err = names.Ask(ctx, c, o, res)
		}
		if res.RequestType == "" {
			res.Note("the version of connect-es is a guess: only its JSON tells it")
		}
		return err
	case probe.ConnectGo, probe.GRPCGo:
		if err := golang.Probe(ctx, c, o, res); err != nil {
			return err
		}
		return names.Ask(ctx, c, o, res)
	}
	res.Note("the oracle is off: the answers do not say what the parser met, so nothing is claimed")
	return nil
}
