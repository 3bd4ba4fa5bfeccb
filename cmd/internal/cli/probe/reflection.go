package probecmd

import (
	"context"
	"errors"
	"strings"
	"time"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/reflected"
	"unwire/cmd/internal/term"
	"unwire/replay/credential"
	"unwire/replay/outbound"
	"unwire/replay/probe"
	"unwire/schema/reflection"
)

// askReflection asks the server for the method's definition by gRPC server reflection. It returns nil if
// the server's parser must be probed instead: reflection is not available, does not describe the method,
// or --settle asks about details.
func askReflection(ctx context.Context, a *app.App, o *probe.Options, f *probeFlags, credentials *credential.Credentials) (*probe.Result, error) {
	if f.noReflection {
		return nil, nil
	}

	// Reflection follows the same limits as the probe, with a pace of its own.
	reach := o.Reach
	reach.Pace = &outbound.Pace{}
	if o.Rate > 0 {
		reach.Pace.Interval = max(time.Second, time.Duration(float64(time.Second)/o.Rate))
	}
	a.Reflection.Allow(reach, credentials, o.To)
	report, err := a.Reflection.Ask(ctx, reflected.Name(o.To))
	switch {
	case err == nil:
	case errors.Is(err, outbound.ErrRefused), ctx.Err() != nil:
		return nil, err
	case errors.Is(err, outbound.ErrNotSent):
		return nil, nil // the probe reports that, too
	case errors.Is(err, reflection.ErrNone):
		a.Say("unwire: the server offers no reflection, so probe uses the server's parse errors instead")
		return nil, nil
	default:
		a.Say("unwire: %s; probe uses the server's parse errors instead", term.Clean(app.PlainText(err)))
		return nil, nil
	}
	s, err := report.Files.Schema(ctx)
	if err != nil {
		a.Say("unwire: the definitions that the server's reflection returned contradict each other: %s", term.Clean(app.PlainText(err)))
		return nil, nil
	}

	// Reflection is useful only if it describes this method.
	service, rpc, _ := strings.Cut(strings.TrimPrefix(o.Method, "/"), "/")
	m := s.Method(service, rpc)
	if m == nil {
		a.Say("unwire: the server's reflection (%s) describes %s, but not %s; probe uses the server's parse errors instead", report.Version, app.Counted(len(report.Services), "service"), term.Clean(o.Method))
		return nil, nil
	}
	o.Declared(m)
	if len(o.Questions) > 0 {
		a.Say("unwire: the server's reflection (%s) describes the method; because of --settle, probe tests the parser, too", report.Version)
		return nil, nil
	}
	return probe.FromReflection(o, m, &probe.Reflection{
		Version: report.Version, Protocol: report.Protocol, Requests: report.Requests, Services: report.Services,
	})
}
