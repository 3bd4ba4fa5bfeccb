package render

import (
	"fmt"
	"io"

	"unwire/captures"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/query"
	"unwire/cmd/internal/term"
	"unwire/decode"
	"unwire/decode/conversation"
)

// forwarded prints what a rewriting rule forwarded instead of a received frame, or that it forwarded
// nothing.
func forwarded(out *term.Output, w io.Writer, at conversation.Resolved, dir captures.Direction, e *contract.Edited, v *query.Views) {
	if len(e.Forwarded) == 0 {
		fmt.Fprintf(w, "    %s\n", out.Yellow(fmt.Sprintf("unwire did not forward this (rule \"%s\")", term.Clean(e.Rule))))
		return
	}
	fmt.Fprintf(w, "    %s\n", out.Yellow(fmt.Sprintf("unwire forwarded this instead (rule \"%s\"), %s:", term.Clean(e.Rule), app.Counted(len(e.Forwarded), "byte"))))
	view := v.Of(at.Call, dir)
	for i := range e.Frames {
		forwardedFrame(w, &e.Frames[i], view, v)
	}
}

// forwardedFrame prints the content of a frame that a rule forwarded.
func forwardedFrame(w io.Writer, f *decode.Frame, view decode.View, v *query.Views) {
	switch {
	case f.End != nil:
		endOfStream(w, f.End, v)
	case f.Tree != nil:
		_ = Fields(w, view.Each(f.Tree), "      ")
	default:
		fmt.Fprintf(w, "      %s\n", term.CleanStart(f.Data, 2000))
	}
}

// Added prints data that rewriting rules forwarded although nothing was received, such as mock responses.
func Added(out *term.Output, w io.Writer, at conversation.Resolved, list []*contract.Edited, v *query.Views) {
	for _, e := range list {
		dir, sender := captures.Up, "client"
		if e.Dir == captures.Down.String() {
			dir, sender = captures.Down, "server"
		}
		fmt.Fprintf(w, "%s  %s\n", Arrow(dir), out.Dim("(the "+sender+" sent nothing)"))
		forwarded(out, w, at, dir, e, v)
	}
}

// ForwardedHeads prints the heads (request line or status, and headers) that rewriting rules changed.
func ForwardedHeads(out *term.Output, w io.Writer, heads []captures.ForwardedHead) {
	for _, h := range heads {
		if h.Dir == captures.Up {
			fmt.Fprintf(w, "%s\n", out.Yellow(fmt.Sprintf("unwire forwarded the request as %s %s (rule \"%s\")", h.Method, term.Clean(h.URL), term.Clean(h.Rule))))
		} else {
			fmt.Fprintf(w, "%s\n", out.Yellow(fmt.Sprintf("unwire answered the client with the status %d (rule \"%s\")", h.Status, term.Clean(h.Rule))))
		}
		for _, f := range append(h.Headers[:len(h.Headers):len(h.Headers)], h.Trailers...) {
			fmt.Fprintf(w, "%s %s: %s\n", Arrow(h.Dir), term.Clean(f.Name), term.Clean(f.Value))
		}
	}
}
