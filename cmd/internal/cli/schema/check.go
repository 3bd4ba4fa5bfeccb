package schemacmd

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"unwire/captures"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/query"
	"unwire/cmd/internal/render/schematext"
	"unwire/decode"
	"unwire/schema"
	"unwire/schema/check"
)

// checkFlags are the values of the flags of 'unwire schema check'.
type checkFlags struct {
	// proto names the definitions.
	proto string

	// json prints the report as JSON.
	json bool

	// html is the file for the report as a web page; "-" is stdout, "" none.
	html string

	// allow are files with fields whose findings are accepted.
	allow []string

	// baseline are earlier reports whose findings are accepted.
	baseline []string
}

// checkCommand returns the command 'unwire schema check', which checks definitions against captures.
func checkCommand(a *app.App) *cobra.Command {
	var f checkFlags
	cmd := &cobra.Command{
		Use:   "check F.uwc…",
		Short: "Compare recorded messages with definitions, and list unknown and contradicted fields",
		Long: `check compares the messages in captures (files with recorded traffic) with .proto
definitions. For each method, check lists the fields that occurred, and the percentage
of the bytes that the definitions describe. check lists unknown fields: fields that are
in the messages, but not in the definitions. check also lists contradicted fields, whose
recorded values cannot have the type in the definitions. The exit status is 1 if a field
is unknown or contradicted. The exit status is also 1 if check could compare no message,
because the captures contain no call of a method in the definitions, or only empty
messages.

You can accept findings (unknown or contradicted fields), so that they do not change the
exit status. With --allow, give a file with lines such as 'unknown shop.v1.Item',
'contradicted shop.v1.Item price' or 'method shop.v1.Orders/Track'; a * in a name
matches any text. With --baseline, give the output of an earlier run with --json; check
then accepts all findings of that earlier run. With --html, check writes the report as
an HTML page, which contains the messages that prove each finding. In these messages,
placeholders replace secrets.`,
		Example: `  # Compare a capture with its own definitions, or with the built-in ones
  unwire schema check F.uwc
  # Print only the unknown fields
  unwire schema check --proto proto/ --json F.uwc | jq .unknown
  # Accept the findings of an earlier run, and write a report for a browser
  unwire schema check --proto defs.binpb --baseline known.json --html report.html F.uwc`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return app.Fail(app.ExitUsage, errors.New("unwire schema check: missing argument F.uwc"), "usage: "+cmd.UseLine())
			}
			return runCheck(cmd.Context(), a, f, args)
		},
	}
	cmd.Flags().StringVar(&f.proto, "proto", "", ".proto definitions that check compares with the messages (default: the definitions in the capture, else the built-in definitions)")
	cmd.Flags().BoolVar(&f.json, "json", false, "print the report as JSON")
	cmd.Flags().StringVar(&f.html, "html", "", "write the report as an HTML page to this file; - is stdout")
	cmd.Flags().StringArrayVar(&f.allow, "allow", nil, "file with findings that check accepts, one on each line, such as 'unknown shop.v1.Item'; can be repeated")
	cmd.Flags().StringArrayVar(&f.baseline, "baseline", nil, "file with the output of an earlier run with --json; check accepts the findings in it; can be repeated")
	return cmd
}

// runCheck executes 'unwire schema check' for captures or exchanges. The exit status is 1 if there are
// findings.
func runCheck(ctx context.Context, a *app.App, f checkFlags, inputs []string) error {
	defs, err := checkedDefinitions(ctx, a, f.proto, inputs)
	if err != nil {
		return err
	}
	var allow []*check.Allowance
	for _, name := range slices.Concat(f.allow, f.baseline) {
		known, err := readAllowance(a, name)
		if err != nil {
			return err
		}
		allow = append(allow, known)
	}

	// Read all captures; damaged ones are checked as far as possible.
	if f.json && f.html == "-" {
		return app.Usagef("--json and --html - both write to stdout")
	}
	coverage := query.NewCoverage(defs, a.Profile())
	ctx, meter := a.ShowProgress(ctx, "checking", inputs...)
	defer meter.Stop()
	damage := withCaptures(a, inputs, func(_ string, c *query.Capture, at query.Address) error {
		if err := a.NeedCalls(ctx, c, at, "schema check"); err != nil {
			return err
		}
		return coverage.Add(ctx, c, at, a.Remark)
	})
	if damage != nil && !errors.Is(damage, captures.ErrDamaged) {
		return damage
	}
	meter.Stop()

	// Accepted findings are removed before the report is written.
	report := coverage.Report()
	for _, known := range allow {
		report.Allow(known)
	}
	if f.html != "" {
		if err := writeCheckPage(ctx, a, f.html, defs, report, inputs); err != nil {
			return err
		}
	}
	switch {
	case f.html == "-":
		a.Say("%s", schematext.CheckSummary(report))
	case f.json:
		err = a.Print(&contract.SchemaCheck{Report: report})
	default:
		err = printCheck(a, report)
	}
	a.SayUndefined(defs, unknownServices(report)...)

	// Damage takes precedence over findings, because a finding may be a consequence of it.
	switch {
	case err != nil || damage != nil:
		return cmp.Or(err, damage)
	case !report.Clean():
		return app.Fail(app.ExitFinding, nil, "")
	}
	return nothingChecked(report, coverage.Exchanges)
}

// printCheck prints a report as text. On a terminal, a report without frames is not printed, because the error that
// nothing was checked says the same.
func printCheck(a *app.App, report *check.Report) error {
	if report.Frames == 0 && a.Out.TTY {
		return nil
	}
	if err := schematext.Check(a.Out, report); err != nil {
		return err
	}
	a.Say("%s", schematext.CheckSummary(report))
	return nil
}

// checkedDefinitions loads the definitions that are checked. --proto none is a usage error.
func checkedDefinitions(ctx context.Context, a *app.App, proto string, inputs []string) (*schema.Schema, error) {
	defs, err := a.LoadDefinitions(ctx, proto, inputs...)
	if defs == nil && err == nil {
		err = app.Usagef("--proto none cannot be used: check needs definitions")
	}
	return defs, err
}

// unknownServices returns the services of the recorded methods that the definitions lack.
func unknownServices(r *check.Report) []string {
	var list []string
	for _, m := range r.UnknownMethods {
		list = append(list, m.Service)
	}
	return list
}

// writeCheckPage writes a report as an HTML page to a file, or to stdout if name is "-". The page shows
// excerpts of redacted frames.
func writeCheckPage(ctx context.Context, a *app.App, name string, defs *schema.Schema, r *check.Report, inputs []string) error {
	page, err := schematext.NewCheckPage(ctx, r, inputs, defs, func(ctx context.Context, addresses []string, do func(string, *decode.Exchange, *decode.Frame)) error {
		byFile := map[string][]query.Address{}
		for _, address := range addresses {
			at := query.ParseAddress(address)
			byFile[at.File] = append(byFile[at.File], at)
		}
		for file, list := range byFile {
			if err := redactedFrames(ctx, a, defs, file, list, do); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return writeResult(a, name, app.ForOwner, page.Write)
}

// redactedFrames calls do for each frame at the given addresses of a capture, with secrets redacted.
func redactedFrames(ctx context.Context, a *app.App, defs *schema.Schema, file string, list []query.Address, do func(string, *decode.Exchange, *decode.Frame)) error {
	c, err := a.OpenCapture(file)
	if err != nil {
		return err
	}
	defer c.Close()
	rules, err := a.ExportRules(ctx, defs)
	if err != nil {
		return err
	}
	return c.RedactedFrames(ctx, list, rules, func(at query.Address, ex *decode.Exchange, f *decode.Frame) { do(at.String(), ex, f) })
}

// readAllowance reads a list of accepted findings: lines MESSAGE FIELD, or an earlier report.
func readAllowance(a *app.App, name string) (*check.Allowance, error) {
	data, err := a.ReadInput(name)
	if err != nil {
		return nil, err
	}
	known, err := check.ReadAllowance(bytes.NewReader(data))
	if err != nil {
		return nil, app.Fail(app.ExitInput, fmt.Errorf("%s: %w", app.InputName(name), err), "write one finding on each line, or give the output of 'unwire schema check --json'")
	}
	return known, nil
}

// nothingChecked returns an error if no recorded message was compared with the definitions, and otherwise
// nil. A check in a CI pipeline must not succeed because the recording was empty. exchanges is the number
// of exchanges that were read.
func nothingChecked(r *check.Report, exchanges int) error {
	if r.Compared() {
		return nil
	}
	known := slices.ContainsFunc(r.Methods, func(m check.MethodCoverage) bool { return m.Type != "" })
	why, hint := "the input contains no exchanges", "'unwire ls F.uwc' lists the recorded exchanges"
	switch {
	case known && r.Bytes > 0:
		why = "none of the messages whose method is in the definitions could be decoded"
	case known:
		why = "all messages whose method is in the definitions are empty"
	case r.Frames > 0 || len(r.UnknownMethods) > 0:
		why, hint = "the definitions contain none of the recorded methods", "name other definitions with --proto"
	case exchanges > 0:
		why = fmt.Sprintf("the input contains %s, but no RPC message", app.Counted(exchanges, "exchange"))
	}
	return app.Fail(app.ExitFinding, fmt.Errorf("nothing was checked: %s", why), hint)
}
