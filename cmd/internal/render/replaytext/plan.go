package replaytext

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strings"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/render"
	"unwire/cmd/internal/term"
	"unwire/replay"
	"unwire/replay/live"
)

// Plan prints what a replay would send. withBytes adds a hex dump of each frame.
func Plan(out *term.Output, p *replay.Description, withBytes bool) {
	out.Sayf("%s\n", out.Bold(term.Clean(strings.TrimSpace(p.Method+" "+p.URL))))
	if p.HTTP == "" {
		out.Sayf("%s, without HTTP\n", p.Protocol)
	} else {
		codec := p.Codec
		if codec == "mixed" {
			codec = "messages in several formats"
		}
		out.Sayf("%s (%s) over HTTP/%s\n", p.Protocol, term.Clean(codec), p.HTTP)
	}
	for _, h := range p.Headers {
		out.Sayf("header %s\n", out.Dim(term.Clean(h.Name+": "+h.Value)))
	}
	if len(p.Refreshed) > 0 {
		out.Sayf("unwire replaces outdated IDs and times by new ones in: %s\n", term.Clean(strings.Join(p.Refreshed, ", ")))
	}
	for _, s := range p.Secrets {
		// A missing secret names the variables that could provide it.
		from := s.From
		switch {
		case s.Omitted:
			from = "missing, so unwire sends the request without it"
		case from == "":
			from = "missing; to provide it, set the variable " + strings.Join(s.Wants, " or ")
		}
		if s.Expires != "" {
			from += ", expires " + s.Expires
		}
		out.Sayf("secret in %s: %s\n", term.Clean(s.Where), term.Clean(from))
	}
	for _, e := range p.Edits {
		out.Sayf("edit: %s\n", term.Clean(e))
	}
	planFrames(out, p.Frames, withBytes)

	// The effects decide whether a user wants to send the request at all.
	switch p.Effects {
	case replay.EffectsNone:
		out.Sayf("effects on the server: none, because the definition marks the method as free of side effects\n")
	default:
		out.Sayf("effects on the server: unknown; the request may change data\n")
	}
	if p.Refusal != "" {
		out.Sayf("unwire would refuse to send this request: %s\n", term.Clean(p.Refusal))
	}
}

// framePacing describes how a planned frame differs from the recorded one, and after which frame of the
// server it is sent.
func framePacing(f *replay.PlanFrame) string {
	var s string
	if f.Append != nil {
		s += fmt.Sprintf(", sent by append call %d", f.Append.Number)
	}
	if f.Edited {
		s += ", edited"
	}
	if f.Compressed {
		s += ", compressed"
	}
	switch {
	case f.Beat && f.Edited:
		s += ", heartbeat, sent as captured"
	case f.Beat:
		s += ", heartbeat, sent periodically"
	}
	if f.Answers != "" {
		s += ", sent after " + render.Place("@"+f.Answers)
	}
	return s
}

// liveSource describes the value of the live server that replaces a captured one.
func liveSource(b *live.Binding) string {
	s := fmt.Sprintf("the value that the live server sends in field %s of %s", b.FromPath, render.Place("@"+b.From))
	if how := strings.TrimSpace(b.Part + " " + b.How); how != "" {
		s += " (" + how + ")"
	}
	return s
}

// planFrames prints the frames of a plan. There may be 200,000, so the lines of several frames are written
// together.
func planFrames(out *term.Output, frames []replay.PlanFrame, withBytes bool) {
	const most = 32 << 10
	var lines bytes.Buffer
	for _, fr := range frames {
		fmt.Fprintf(&lines, "client frame %d: %s%s\n", fr.Seq, app.Counted(fr.Len, "byte"), term.Clean(framePacing(&fr)))
		for _, b := range fr.Live {
			fmt.Fprintf(&lines, "  field %s gets %s\n", term.Clean(b.Path), term.Clean(liveSource(&b)))
		}
		if withBytes {
			lines.WriteString(hex.Dump(fr.Data))
		}
		if lines.Len() >= most {
			fmt.Fprint(out, out.Wrap(lines.String()))
			lines.Reset()
		}
	}
	fmt.Fprint(out, out.Wrap(lines.String()))
}
