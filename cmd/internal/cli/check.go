package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"unwire/captures"
	"unwire/decode"
	"unwire/schema"
)

func (a *app) checkCommand() *cobra.Command {
	var dir string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check F.uwc…",
		Short: "Say how far definitions explain traffic: coverage, unknown fields, contradictions",
		Long: `check holds every message of captures against definitions: which fields were
seen, which are unknown, which contradict their declaration, and how many bytes
are explained. The exit status is 1 where something is unknown or contradicted.`,
		Example: "  unwire schema check F.uwc\n  unwire schema check --proto proto/ --json F.uwc | jq .unknown",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fail(exitUsage, errors.New("unwire schema check: missing argument F.uwc"), "usage: "+cmd.UseLine())
			}
			return a.check(cmd.Context(), dir, asJSON, args)
		},
	}
	cmd.Flags().StringVar(&dir, "proto", "", "folder of .proto files (default: the built-in ones)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "the report as JSON")
	return cmd
}

func (a *app) check(ctx context.Context, dir string, asJSON bool, inputs []string) error {
	if dir == noDefinitions {
		return usagef("--proto none leaves nothing to check against")
	}
	defs, err := loadDefinitions(dir)
	if err != nil {
		return err
	}
	report, err := a.checkCaptures(ctx, defs, inputs)
	if err != nil {
		return err
	}
	if asJSON {
		err = report.WriteJSON(a.out)
	} else {
		err = a.printReport(report)
	}
	if err == nil && !report.Clean() {
		return fail(exitFinding, nil, "")
	}
	return err
}

// checkCaptures checks the exchanges of captures against definitions.
func (a *app) checkCaptures(ctx context.Context, defs *schema.Schema, inputs []string) (*schema.Report, error) {
	file, part := "", false
	k := schema.NewChecker(defs, schema.CheckOptions{
		Address: func(ex *decode.Exchange, f *decode.Frame) string {
			return address{file, ex.ID, part, f.Dir, f.Seq}.String()
		},
	})
	for _, name := range inputs {
		file = parseAddress(name).File
		err := eachExchange(ctx, name, func(ex *decode.Exchange, piece bool) error {
			if part = piece; piece {
				decode.DropJoined(ex)
			} else {
				a.remark(ex) // of a conversation, with what its pieces have to say
			}
			k.Add(ex)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return k.Report(), nil
}

func (a *app) printReport(r *schema.Report) error {
	rows := make([][]string, len(r.Methods))
	for i, m := range r.Methods {
		typ := m.Type
		if typ == "" {
			typ = "(unknown method)"
		}
		rows[i] = []string{
			m.Service + "/" + m.RPC, arrow(direction(m.Dir)), typ,
			fmt.Sprintf("%d of %d", m.Decoded, m.Frames), percent(m.BytesExplained, m.Bytes),
		}
	}
	if err := a.out.Table([]string{"METHOD", "DIR", "TYPE", "DECODED", "BYTES EXPLAINED"}, rows); err != nil {
		return err
	}
	rows = rows[:0]
	for _, u := range r.Unknown {
		rows = append(rows, []string{"unknown", u.Message, fieldLabel(u.Number, u.Name), fmt.Sprintf("%s (p %.2f)", u.Kind, u.P), strconv.Itoa(u.Seen), someFrames(u.Frames)})
	}
	for _, c := range r.Contradicted {
		rows = append(rows, []string{"contradicted", c.Message, fieldLabel(c.Number, c.Name), c.Reason, strconv.Itoa(c.Seen), someFrames(c.Frames)})
	}
	for _, m := range r.UnknownMethods {
		rows = append(rows, []string{"unknown method", m.Service, m.RPC, "", strconv.Itoa(m.Count), someFrames(m.Frames)})
	}
	if len(rows) > 0 {
		fmt.Fprintln(a.out)
		if err := a.out.Table([]string{"FINDING", "MESSAGE", "FIELD", "WHAT", "SEEN", "FRAMES"}, rows); err != nil {
			return err
		}
	}
	a.say("%s", reportSummary(r))
	return nil
}

// reportSummary says a report in one line.
func reportSummary(r *schema.Report) string {
	s := fmt.Sprintf("%d of %d frames decoded, %s of %s explained; %s seen, %d never seen; %d unknown, %d contradicted",
		r.Decoded, r.Frames, percent(r.BytesExplained, r.Bytes), counted(r.Bytes, "byte"), counted(r.FieldsSeen, "field"), r.FieldsNeverSeen, len(r.Unknown), len(r.Contradicted))
	if n := len(r.UnknownMethods); n > 0 {
		s += ", " + counted(n, "unknown method")
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
