package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"unwire/captures"
	"unwire/cmd/internal/term"
	"unwire/decode"
	"unwire/decode/score"
)

// A transcriptLine is a line of `unwire extract --json`.
type transcriptLine struct {
	V        int   `json:"v"`
	Exchange int64 `json:"exchange"`
	*score.Transcript
}

type extractFlags struct {
	json, all, parts bool
	top              int
}

func (a *app) extractCommand() *cobra.Command {
	var f extractFlags
	cmd := &cobra.Command{
		Use:   "extract F.uwc [ID]",
		Short: "Find the answer and the other texts of an exchange, ranked, with reasons",
		Long: `extract joins the text of each field path over the frames of an exchange and
ranks what it finds: the answer, the thinking, the user's prompt, tool calls,
IDs, metadata. It needs no schema; each score comes with its reasons.`,
		Example: "  unwire extract F.uwc 2\n  unwire extract --json F.uwc | jq -r .answer",
		Args:    argsBetween(1, "F.uwc", "ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			addr, err := addressArgs(args, true)
			if err != nil {
				return err
			}
			return a.extract(cmd.Context(), addr, f)
		},
	}
	cmd.Flags().BoolVar(&f.json, "json", false, "a JSON object an exchange")
	cmd.Flags().BoolVar(&f.parts, "parts", false, "each call alone, where several calls are one conversation")
	cmd.Flags().BoolVar(&f.all, "all", false, "also exchanges in which nothing was found")
	cmd.Flags().IntVar(&f.top, "top", 8, "candidates to list an exchange (JSON has all of them)")
	return cmd
}

func (a *app) extract(ctx context.Context, addr address, f extractFlags) error {
	if f.top < 1 {
		return usagef("--top must be at least 1")
	}
	store, err := openCapture(addr.File)
	if err != nil {
		return err
	}
	defer store.Close()
	if addr.Exchange != 0 {
		f.all = true
		addr.Part = addr.Part || f.parts
		ex, err := exchangeAt(ctx, store, addr)
		if err != nil {
			return err
		}
		if err := a.extractOne(ex.Exchange, f); err != nil {
			return err
		}
		return a.undecoded(ex.Exchange, nil)
	}
	all := &decode.Conversations{}
	if !f.parts {
		if all, err = decode.FindConversations(ctx, store); err != nil {
			return err
		}
	}
	for rec, err := range store.Exchanges(ctx) {
		if err != nil {
			return err
		}
		var ex *decode.Exchange
		switch head := all.Head(rec.ID); head {
		case 0:
			ex, err = decode.Decode(ctx, store, rec.ID, decode.Options{})
		case rec.ID:
			var c *decode.Conversation
			if c, err = all.Decode(ctx, store, head, decode.Options{}); err == nil {
				ex = c.Exchange
			}
		default:
			continue // its message is in the conversation
		}
		if err != nil {
			return err
		}
		if err := a.extractOne(ex, f); err != nil {
			return err
		}
		a.remark(ex)
	}
	return nil
}

func (a *app) extractOne(ex *decode.Exchange, f extractFlags) error {
	tr := score.Extract(ex, score.Options{})
	if f.json {
		return a.printJSON(transcriptLine{1, ex.ID, tr})
	}
	if len(tr.Candidates) == 0 && !f.all {
		return nil
	}
	w := bufio.NewWriter(a.out)
	a.printTranscript(w, ex, tr, f.top)
	return w.Flush()
}

func (a *app) printTranscript(w io.Writer, ex *decode.Exchange, tr *score.Transcript, top int) {
	fmt.Fprintf(w, "%s\n", a.out.Bold(fmt.Sprintf("#%d %s", ex.ID, term.Clean(callName(ex)))))
	switch {
	case tr.Answer != "":
		fmt.Fprintf(w, "%s\n", indent(term.CleanText(tr.Answer), "  "))
	case ex.Message != "":
		fmt.Fprintf(w, "  no answer; it ended in %s: %s\n", term.Clean(ex.Code), term.Clean(ex.Message))
	default:
		fmt.Fprintln(w, "  no answer found")
	}
	for i, c := range tr.Candidates {
		if i == top {
			fmt.Fprintf(w, "  … %d more (--top)\n", len(tr.Candidates)-top)
			break
		}
		fmt.Fprintf(w, "  %2d. %-11s %.2f  %s %s  %s  %s\n", c.Rank, c.Role, c.Score, dirArrow(c.Dir), term.Clean(c.Path),
			frameSpan(c.Frames), term.Cut(strconv.Quote(term.Clean(c.Text)), 60))
		fmt.Fprintf(w, "      %s\n", a.out.Dim(reasonLine(c.Reasons, 4)))
	}
	fmt.Fprintln(w)
}

// callName is the RPC, or method and URL where there is none.
func callName(ex *decode.Exchange) string {
	if ex.Service != "" {
		return ex.Service + "/" + ex.RPC
	}
	return ex.Method + " " + ex.URL
}

func dirArrow(dir string) string {
	if dir == captures.Up.String() {
		return "↑"
	}
	return "↓"
}

// frameSpan names frames shortly: "frame 3", "frames 3…17 (9)".
func frameSpan(frames []int) string {
	switch len(frames) {
	case 0:
		return "no frame"
	case 1:
		return fmt.Sprintf("frame %d", frames[0])
	}
	return fmt.Sprintf("frames %d…%d (%d)", frames[0], frames[len(frames)-1], len(frames))
}

// reasonLine lists the weightiest reasons.
func reasonLine(reasons []score.Reason, top int) string {
	parts := make([]string, 0, top)
	for i, r := range reasons {
		if i == top {
			parts = append(parts, "…")
			break
		}
		parts = append(parts, fmt.Sprintf("%s %+.1f", r.Feature, r.Weight))
	}
	return strings.Join(parts, ", ")
}

func indent(s, by string) string {
	return by + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n"+by)
}
