package replaytext

import (
	"encoding/hex"
	"fmt"
	"strings"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/term"
	"unwire/replay"
)

// Plan writes what would be sent, with its bytes where it goes to another host.
func Plan(out *term.Output, p *replay.Description, withBytes bool) {
	fmt.Fprintf(out, "%s\n", out.Bold(term.Clean(p.Method+" "+p.URL)))
	fmt.Fprintf(out, "%s (%s) over HTTP/%s\n", p.Protocol, term.Clean(p.Codec), p.HTTP)
	for _, h := range p.Headers {
		fmt.Fprintf(out, "↑ %s\n", out.Dim(term.Clean(h.Name+": "+h.Value)))
	}
	if len(p.Refreshed) > 0 {
		fmt.Fprintf(out, "refreshed: %s\n", term.Clean(strings.Join(p.Refreshed, ", ")))
	}
	for _, s := range p.Secrets {
		from := s.From
		switch {
		case s.Omitted:
			from = "left out"
		case from == "":
			from = "missing: set " + strings.Join(s.Wants, " or ")
		}
		if s.Expires != "" {
			from += ", expires " + s.Expires
		}
		fmt.Fprintf(out, "secret in %s: %s\n", term.Clean(s.Where), term.Clean(from))
	}
	for _, e := range p.Edits {
		fmt.Fprintf(out, "edit: %s\n", term.Clean(e))
	}
	for _, fr := range p.Frames {
		fmt.Fprintf(out, "frame up/%d: %s%s\n", fr.Seq, app.Counted(fr.Len, "byte"), term.Clean(framePacing(&fr)))
		if withBytes {
			fmt.Fprintf(out, "%s", hex.Dump(fr.Data))
		}
	}
	switch p.Effects {
	case replay.EffectsNone:
		fmt.Fprintln(out, "effects: none, as its method says")
	default:
		fmt.Fprintln(out, "effects: unknown; nothing says that it has none")
	}
	if p.Refusal != "" {
		fmt.Fprintf(out, "it would be refused: %s\n", term.Clean(p.Refusal))
	}
}

// framePacing says what a frame of a plan waits for and takes over.
func framePacing(f *replay.PlanFrame) string {
	var s string
	if f.Append != nil {
		s += fmt.Sprintf(", append %d", f.Append.Number)
	}
	if f.Edited {
		s += ", edited"
	}
	if f.Compressed {
		s += ", compressed"
	}
	switch {
	case f.Beat && f.Edited:
		s += ", a heartbeat as it was captured"
	case f.Beat:
		s += ", a heartbeat, by the clock"
	}
	if f.Answers != "" {
		s += ", waits for " + f.Answers
	}
	for _, b := range f.Live {
		s += strings.TrimRight(fmt.Sprintf(", %s from %s %s %s", b.Path, b.From, b.FromPath, strings.TrimSpace(b.Part+" "+b.How)), " ")
	}
	return s
}
