package schemacmd

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/term"
	"unwire/schema"
	"unwire/schema/compare"
	"unwire/schema/extract"
	"unwire/schema/interrupt"
)

// A schemaChangeLine is a line of `unwire schema diff --json`.
type schemaChangeLine struct {
	V int `json:"v"`
	compare.Change
	// exchanges that hold the element
	Captures []string `json:"captures,omitempty"`
	// files of experiments that hold it
	Replays []string `json:"replays,omitempty"`
	// of drift: whether our definitions are as the old version is
	Proto string `json:"proto,omitempty"`
}

type schemaDiffFlags struct {
	json     bool
	format   string
	captures []string
	suite    string // folder of experiments; "" for none
	capture  string // of the experiments that name none
	proto    bool   // of drift: the definitions are compared too
}

func (f *schemaDiffFlags) addTo(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.json, "json", false, "a JSON object a change")
	flags.StringVar(&f.format, "format", "text", "text, md (Markdown) or json")
	flags.StringArrayVar(&f.captures, "captures", nil, "name the exchanges of this capture that a change touches; may be repeated")
	flags.StringVar(&f.suite, "suite", "", "name the experiments of this folder that a change touches: see replay suite")
	flags.StringVar(&f.capture, "capture", "", "capture of the experiments that name none")
}

func schemaDiffCommand(a *app.App) *cobra.Command {
	var f schemaDiffFlags
	cmd := &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "The changelog between two versions of definitions, and what it breaks",
		Long: `diff compares definitions element by element: what was added, removed, renamed,
retyped, relabelled, renumbered or moved, new methods first, and what each change
breaks: the wire (who speaks one version misreads the other), JSON, or only source
code. A type that was renamed or moved is found by its fields and uses, and is one
change. In which file something stands, comments and options are no difference.

OLD and NEW are each a folder of .proto files, a .proto file, a descriptor set, or
shipped code that holds definitions, as schema extract reads it.
With --captures, each change names the recorded exchanges that hold what changed;
with --suite, the experiments of replay suite that do, as recorded or as edited.
The exit status is 1 where there is a difference.`,
		Example: "  unwire schema diff proto-old/ proto/\n  unwire schema diff --format md old.binpb new.binpb > CHANGES.md\n" +
			"  unwire schema diff --captures F.uwc proto-old/ proto/",
		Args: app.ExactArgs("OLD", "NEW"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return schemaDiff(cmd.Context(), a, args[0], args[1], f)
		},
	}
	f.addTo(cmd)
	return cmd
}

func schemaDiff(ctx context.Context, a *app.App, before, after string, f schemaDiffFlags) error {
	if err := checkChangesFormat(f.format); err != nil {
		return err
	}
	old, err := schema.LoadVersion(ctx, before, nil)
	if err != nil {
		return app.SourceError(before, err)
	}
	now, err := schema.LoadVersion(ctx, after, nil)
	if err != nil {
		return app.SourceError(after, err)
	}
	return changelog(ctx, a, old, now, nil, f)
}

func checkChangesFormat(format string) error {
	switch format {
	case "text", "md", "json":
		return nil
	}
	return app.Usagef("--format is text, md or json, not %q", format)
}

// changelog prints what changed between two versions; ours are the definitions
// that may be out of date, if there are any.
func changelog(ctx context.Context, a *app.App, old, now, ours *schema.Schema, f schemaDiffFlags) error {
	reportOmitted(a, old)
	reportOmitted(a, now)
	sayUnread(a, old)
	sayUnread(a, now)
	changes, err := interrupt.Run(ctx, func() ([]compare.Change, error) { return compare.Diff(old, now), nil })
	if err != nil {
		return err
	}
	lines := make([]schemaChangeLine, len(changes))
	for i, c := range changes {
		lines[i] = schemaChangeLine{V: 1, Change: c}
	}
	if len(f.captures) > 0 {
		t := compare.NewToucher(old, now, changes)
		if err := touchCaptures(ctx, t, f.captures); err != nil {
			return err
		}
		for i := range lines {
			lines[i].Captures = t.Touched[i]
		}
	}
	if f.suite != "" {
		t := compare.NewToucher(old, now, changes)
		if err := touchSuite(ctx, a, t, f, cmp.Or(ours, old)); err != nil {
			return err
		}
		for i := range lines {
			lines[i].Replays = t.Touched[i]
		}
	}
	stale := 0
	if ours != nil {
		if stale, err = interrupt.Run(ctx, func() (int, error) { return markOutdated(lines, ours, now), nil }); err != nil {
			return err
		}
	}
	if err := printSchemaChanges(a, lines, f); err != nil {
		return err
	}
	if ours != nil && len(lines) > 0 {
		a.Say("%s", outdatedSummary(stale))
	}
	if err := notRead(slices.Concat(old.Faults, now.Faults)); err != nil {
		return err
	}
	if len(lines) > 0 {
		return app.Fail(app.ExitFinding, nil, "")
	}
	return nil
}

// notRead is the error of a command that did its work without the files at which
// unwire failed, nil where there are none.
func notRead(faults []*extract.Fault) error {
	if len(faults) == 0 {
		return nil
	}
	files := fmt.Sprintf("%s is", faults[0].File)
	if len(faults) > 1 {
		files = fmt.Sprintf("%s and %d more are", faults[0].File, len(faults)-1)
	}
	return app.Fail(app.ExitInput, fmt.Errorf("%s left out: unwire failed at %s", files, faults[0].Where),
		"this is a fault of unwire; please report it with this place, and with the file if you may")
}

// sayUnread says which files of shipped code were not read.
func sayUnread(a *app.App, s *schema.Schema) {
	for _, err := range s.Unread {
		a.Say("unwire: not read: %s", term.Clean(err.Error()))
	}
}

// reportOmitted reports which files of a tree were left out.
func reportOmitted(a *app.App, s *schema.Schema) {
	for _, p := range s.Omitted {
		if p.Symbol == "" {
			a.Say("unwire: %s is passed over: it imports %s", p.File, p.Other)
			continue
		}
		a.Say("unwire: %s is passed over: %s declares %s, too", p.File, p.Other, p.Symbol)
	}
}

func printSchemaChanges(a *app.App, lines []schemaChangeLine, f schemaDiffFlags) error {
	if f.json || f.format == "json" {
		for _, l := range lines {
			if err := a.PrintJSON(l); err != nil {
				return err
			}
		}
		a.Say("%s", changesSummary(lines))
		return nil
	}
	var err error
	if f.format == "md" {
		err = schemaChangesMarkdown(a, lines)
	} else if len(lines) > 0 {
		err = schemaChangesTable(a, lines, f)
	}
	a.Say("%s", changesSummary(lines))
	return err
}

func schemaChangesTable(a *app.App, lines []schemaChangeLine, f schemaDiffFlags) error {
	header := []string{"CHANGE", "KIND", "ELEMENT", "OLD", "NEW", "BREAKS", "NOTE"}
	if len(f.captures) > 0 {
		header = append(header, "CAPTURES")
	}
	if f.suite != "" {
		header = append(header, "REPLAYS")
	}
	if f.proto {
		header = append(header, "PROTO")
	}
	rows := make([][]string, len(lines))
	for i, l := range lines {
		rows[i] = []string{string(l.Change.Change), string(l.Kind), l.Element, l.Old, l.New, string(l.Breaks), l.Note}
		if len(f.captures) > 0 {
			rows[i] = append(rows[i], someFrames(l.Captures))
		}
		if f.suite != "" {
			rows[i] = append(rows[i], someFrames(l.Replays))
		}
		if f.proto {
			rows[i] = append(rows[i], l.Proto)
		}
	}
	return a.Out.Table(header, rows)
}

// schemaChangesMarkdown writes a section a kind of element.
func schemaChangesMarkdown(a *app.App, lines []schemaChangeLine) error {
	titles := map[compare.ElementKind]string{
		compare.MethodElement: "Methods", compare.ServiceElement: "Services", compare.MessageElement: "Messages", compare.EnumElement: "Enums",
		compare.OneofElement: "Oneofs", compare.FieldElement: "Fields", compare.ValueElement: "Enum values",
	}
	var b strings.Builder
	if len(lines) == 0 {
		b.WriteString("No changes.\n")
	}
	last := compare.ElementKind("")
	for _, l := range lines {
		if l.Kind != last {
			if last != "" {
				b.WriteString("\n")
			}
			fmt.Fprintf(&b, "## %s\n\n", titles[l.Kind])
			last = l.Kind
		}
		fmt.Fprintf(&b, "- %s %s", l.Change.Change, markdownCode(l.Element))
		switch {
		case l.Change.Change == compare.Added:
			b.WriteString(": " + markdownCode(l.New))
		case l.Change.Change == compare.Removed:
			b.WriteString(" (it was " + markdownCode(l.Old) + ")")
		default:
			b.WriteString(": " + markdownCode(l.Old) + " → " + markdownCode(l.New))
		}
		if l.Breaks != "" {
			fmt.Fprintf(&b, ", **breaks %s**", breaksWords(l.Breaks))
		}
		if l.Note != "" {
			b.WriteString("; " + term.Clean(l.Note))
		}
		if len(l.Captures) > 0 {
			b.WriteString("; in " + someFrames(l.Captures))
		}
		if len(l.Replays) > 0 {
			b.WriteString("; touches " + someFrames(l.Replays))
		}
		if l.Proto != "" {
			b.WriteString("; our definitions are " + l.Proto)
		}
		b.WriteString("\n")
	}
	_, err := a.Out.Write([]byte(b.String()))
	return err
}

// markdownCode is s as code, whatever it holds.
func markdownCode(s string) string { return "`" + strings.ReplaceAll(term.Clean(s), "`", "'") + "`" }

func breaksWords(b compare.Break) string {
	if b == compare.BreaksWire {
		return "the wire"
	}
	if b == compare.BreaksJSON {
		return "JSON"
	}
	return string(b)
}

func changesSummary(lines []schemaChangeLine) string {
	if len(lines) == 0 {
		return "no changes"
	}
	breaks := map[compare.Break]int{}
	for _, l := range lines {
		breaks[l.Breaks]++
	}
	return fmt.Sprintf("%d changes: %d break the wire, %d JSON, %d source, %d nothing", len(lines),
		breaks[compare.BreaksWire], breaks[compare.BreaksJSON], breaks[compare.BreaksSource], breaks[compare.BreaksNothing])
}
