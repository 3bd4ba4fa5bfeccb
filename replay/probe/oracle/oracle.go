// Package oracle probes a server's parser for the definition of a request. It finds out which
// runtime answers, and uses the package for it: es for protobuf-es, golang for protobuf-go, and
// names for both.
//
// Run collects what can be found out about a method, and NewPlan reports what Run would send.
// VerifyMethods checks the definitions of the requests in a capture; each method is verified with
// the headers and the message of its captured exchange.
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

// Run probes the fields of a method's request through the error messages of the server's parser.
//
// Shape: if the server or ctx stops the probe, the Result contains the findings so far, and Stopped the
// reason. The same responses lead to the same requests, so a run with the journal of a killed one
// continues it.
// Limits: Options.Budget, Rate and Timeout; at most 1 MiB of a response is read.
// Errors: outbound.ErrRefused; invalid options; the error of ctx; errors of the journal.
func Run(ctx context.Context, o probe.Options) (*probe.Result, error) {
	return probe.Run(ctx, &o, es.FirstMessage, ask)
}

// ask continues a probe with the package for the server's runtime, which is known from the first
// response.
func ask(ctx context.Context, c *probe.Client, o *probe.Options, res *probe.Result) error {
	switch res.Runtime {
	case probe.ES1, probe.ES2:
		err := es.Probe(ctx, c, o, res)
		if err == nil {
			err = names.Ask(ctx, c, o, res)
		}
		if res.RequestType == "" {
			res.Note("the version of connect-es is a guess, because only JSON requests reveal the version")
		}
		return err
	case probe.ConnectGo, probe.GRPCGo:
		if err := golang.Probe(ctx, c, o, res); err != nil {
			return err
		}
		return names.Ask(ctx, c, o, res)
	}
	res.Note("the server's answers do not contain the error messages of its parser, so unwire reports no fields")
	return nil
}
