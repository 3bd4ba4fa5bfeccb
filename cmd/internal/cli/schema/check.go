package schemacmd

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"unwire/captures"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/render"
	"unwire/decode"
	"unwire/proto"
	"unwire/schema"
	"unwire/schema/check"
)

type checkFlags struct {
	proto    string
	json     bool
	html     string
	allow    []string
	baseline []string
}

func checkCommand(a *app.App) *cobra.Command {
	var f checkFlags
	cmd := &cobra.Command{
		Use:   "check F.uwc…",
		Short: "Say how far definitions explain traffic: coverage, unknown fields, contradictions",
		Long: `check holds every message of captures against definitions: which fields were
seen, which are unknown, which contradict their declaration, and how many bytes
are explained. The exit status is 1 where something is unknown or contradicted,
and where no message could be checked: the captures hold no exchanges, none of a
method in the definitions, or only empty messages.

What is known already need not fail a build: --allow takes a file of lines, each
[unknown|contradicted] MESSAGE [FIELD] or method SERVICE/RPC, where * stands for
any run of characters in a name; and --baseline an earlier report of --json, whose
findings then pass. --html writes one page for people, without any script, in
which every finding leads to the frames that show it, their secrets replaced.`,
		Example: `  unwire schema check F.uwc
  unwire schema check --proto proto/ --json F.uwc | jq .unknown
  unwire schema check --proto defs.binpb --baseline known.json --html report.html F.uwc`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return app.Fail(app.ExitUsage, errors.New("unwire schema check: missing argument F.uwc"), "usage: "+cmd.UseLine())
			}
			return runCheck(cmd.Context(), a, f, args)
		},
	}
	cmd.Flags().StringVar(&f.proto, "proto", "", "folder of .proto files, .proto file or descriptor set (default: the built-in definitions)")
	cmd.Flags().BoolVar(&f.json, "json", false, "the report as JSON")
	cmd.Flags().StringVar(&f.html, "html", "", "file for the report as a page; - for stdout")
	cmd.Flags().StringArrayVar(&f.allow, "allow", nil, "file of findings that are known, a line each; may be repeated")
	cmd.Flags().StringArrayVar(&f.baseline, "baseline", nil, "earlier report of --json whose findings are known; may be repeated")
	return cmd
}

func runCheck(ctx context.Context, a *app.App, f checkFlags, inputs []string) error {
	defs, err := app.NeedDefinitions(ctx, f.proto, "check")
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
	if f.json && f.html == "-" {
		return app.Usagef("--json and --html - both write to stdout")
	}
	report, exchanges, damage := CheckCaptures(ctx, a, defs, inputs)
	if report == nil {
		return damage
	}
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
		a.Say("%s", ReportSummary(report))
	case f.json:
		err = a.Print(&contract.SchemaCheck{Report: report})
	default:
		err = printReport(a, report)
	}
	switch {
	case err != nil || damage != nil:
		return cmp.Or(err, damage)
	case !report.Clean():
		return app.Fail(app.ExitFinding, nil, "")
	}
	return nothingChecked(report, exchanges)
}

func readAllowance(a *app.App, name string) (*check.Allowance, error) {
	data, err := a.ReadInput(name)
	if err != nil {
		return nil, err
	}
	known, err := check.ReadAllowance(bytes.NewReader(data))
	if err != nil {
		return nil, app.Fail(app.ExitInput, fmt.Errorf("%s: %w", app.InputName(name), err), "a line is MESSAGE FIELD, or the file is what check --json wrote")
	}
	return known, nil
}

// nothingChecked is the finding that no message was compared with the definitions:
// a check in a pipeline must not pass because the recording failed. It is nil where
// at least one was.
func nothingChecked(r *check.Report, exchanges int) error {
	if r.DetailsDecoded > 0 || len(r.Unknown)+len(r.Contradicted) > 0 {
		return nil
	}
	known := false
	for _, m := range r.Methods {
		if m.Type == "" {
			continue
		}
		if known = true; m.Decoded > 0 && m.Bytes > 0 {
			return nil
		}
	}
	why, hint := "the input holds no exchanges", "'unwire ls F.uwc' lists what was recorded"
	switch {
	case known && r.Bytes > 0:
		why = "no message of a known method could be decoded"
	case known:
		why = "all messages of known methods are empty"
	case r.Frames > 0 || len(r.UnknownMethods) > 0:
		why, hint = "the definitions know none of the methods", "--proto names the definitions"
	case exchanges > 0:
		why = fmt.Sprintf("%s without a message of an RPC", app.Counted(exchanges, "exchange"))
	}
	return app.Fail(app.ExitFinding, fmt.Errorf("nothing was checked: %s", why), hint)
}

// CheckCaptures checks the exchanges of captures against definitions, and counts
// them. For a damaged capture it returns the report of what could be read and an error.
func CheckCaptures(ctx context.Context, a *app.App, defs *schema.Schema, inputs []string) (_ *check.Report, exchanges int, _ error) {
	var damage error
	file := ""
	k := check.NewChecker(defs, check.CheckOptions{
		Profile: proto.Profile(),
		Address: func(ex *decode.Exchange, f *decode.Frame, part bool) string {
			return app.Address{File: file, Exchange: ex.ID, Part: part, Dir: f.Dir, Frame: f.Seq}.String()
		},
	})
	for _, name := range inputs {
		file = app.ParseAddress(name).File
		n, err := checkCapture(ctx, k, name, a.Remark)
		if exchanges += n; err != nil && !errors.Is(err, captures.ErrDamaged) {
			return nil, exchanges, err
		}
		damage = errors.Join(damage, err)
	}
	return k.Report(), exchanges, damage
}

// checkCapture has k check the exchanges of a capture, or the one that an address names.
func checkCapture(ctx context.Context, k *check.Checker, name string, onExchange func(*decode.Exchange)) (exchanges int, err error) {
	addr := app.ParseAddress(name)
	store, err := app.OpenCapture(addr.File)
	if err != nil {
		return 0, err
	}
	defer store.Close()
	return k.AddCapture(ctx, store, addr.Exchange, addr.Part, onExchange)
}

func methodRows(r *check.Report) [][]string {
	rows := make([][]string, len(r.Methods))
	for i, m := range r.Methods {
		typ := m.Type
		if typ == "" {
			typ = "(unknown method)"
		}
		rows[i] = []string{
			m.Service + "/" + m.RPC, render.Arrow(direction(m.Dir)), typ,
			fmt.Sprintf("%d of %d", m.Decoded, m.Frames), percent(m.BytesExplained, m.Bytes),
		}
	}
	return rows
}

func printReport(a *app.App, r *check.Report) error {
	if err := a.Out.Table([]string{"METHOD", "DIR", "TYPE", "DECODED", "BYTES EXPLAINED"}, methodRows(r)); err != nil {
		return err
	}
	if err := printTypes(a, r); err != nil {
		return err
	}
	var rows [][]string
	for _, u := range r.Unknown {
		rows = append(rows, []string{findingWord("unknown", u.Allowed), u.Message, fieldLabel(u.Number, u.Name), fmt.Sprintf("%s (p %.2f)", u.Kind, u.P), strconv.Itoa(u.Seen), someFrames(u.Frames)})
	}
	for _, c := range r.Contradicted {
		rows = append(rows, []string{findingWord("contradicted", c.Allowed), c.Message, fieldLabel(c.Number, c.Name), c.Reason, strconv.Itoa(c.Seen), someFrames(c.Frames)})
	}
	for _, m := range r.UnknownMethods {
		rows = append(rows, []string{findingWord("unknown method", m.Allowed), m.Service, m.RPC, "", strconv.Itoa(m.Count), someFrames(m.Frames)})
	}
	if len(rows) > 0 {
		fmt.Fprintln(a.Out)
		if err := a.Out.Table([]string{"FINDING", "MESSAGE", "FIELD", "WHAT", "SEEN", "FRAMES"}, rows); err != nil {
			return err
		}
	}
	a.Say("%s", ReportSummary(r))
	return nil
}

// printTypes prints how much was seen of each message type.
func printTypes(a *app.App, r *check.Report) error {
	if len(r.Messages) == 0 {
		return nil
	}
	fmt.Fprintln(a.Out)
	return a.Out.Table([]string{"MESSAGE", "SEEN", "FIELDS SEEN", "NEVER SEEN"}, typeRows(r))
}

func typeRows(r *check.Report) [][]string {
	rows := make([][]string, len(r.Messages))
	for i, m := range r.Messages {
		rows[i] = []string{m.Message, strconv.Itoa(m.Seen), fmt.Sprintf("%d of %d", m.FieldsSeen, m.Fields), someNumbers(m.NeverSeen)}
	}
	return rows
}

// someNumbers lists up to a dozen numbers.
func someNumbers(list []int32) string {
	const most = 12
	words := make([]string, min(len(list), most))
	for i := range words {
		words[i] = strconv.Itoa(int(list[i]))
	}
	if len(list) > most {
		words = append(words, "…")
	}
	return strings.Join(words, " ")
}

func findingWord(what string, allowed bool) string {
	if allowed {
		return "(known) " + what
	}
	return what
}

// ReportSummary says a report in one line.
func ReportSummary(r *check.Report) string {
	s := fmt.Sprintf("%d of %d frames decoded, %s of %s explained; %s seen, %d never seen; %d unknown, %d contradicted",
		r.Decoded, r.Frames, percent(r.BytesExplained, r.Bytes), app.Counted(r.Bytes, "byte"), app.Counted(r.FieldsSeen, "field"), r.FieldsNeverSeen, len(r.Unknown), len(r.Contradicted))
	if n := len(r.UnknownMethods); n > 0 {
		s += ", " + app.Counted(n, "unknown method")
	}
	if n := r.AllowedFindings(); n > 0 {
		s += fmt.Sprintf("; %d of these known", n)
	}
	return s
}

func direction(word string) captures.Direction {
	if word == captures.Up.String() {
		return captures.Up
	}
	return captures.Down
}

func fieldLabel(number int32, name string) string {
	switch {
	case number == 0:
		return name
	case name == "":
		return strconv.Itoa(int(number))
	}
	return fmt.Sprintf("%d %s", number, name)
}

// someFrames names up to three frames.
func someFrames(frames []string) string {
	if len(frames) > 3 {
		return strings.Join(frames[:3], " ") + " …"
	}
	return strings.Join(frames, " ")
}

// percent is part of whole, rounded so that only all of it is 100 %.
func percent(part, whole int64) string {
	switch {
	case whole == 0:
		return "-"
	case part == whole:
		return "100 %"
	}
	return fmt.Sprintf("%.1f %%", min(99.9, 100*float64(part)/float64(whole)))
}
