package render

import (
	"fmt"
	"io"
	"strings"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/term"
)

// Explanation prints the evidence for the type of a field. of names the message or file that has the
// field, or is "".
func Explanation(out *term.Output, w io.Writer, e *contract.Explanation, of string) {
	head := "Field " + e.Path
	if of != "" {
		head += " of " + of
	}
	fmt.Fprintf(w, "%s\n", out.Bold(term.Clean(head)))
	fmt.Fprint(w, out.Wrap("  "+out.Dim(fmt.Sprintf("at offset %#x; the evidence is from %s", e.Off, evidenceText(e)))+"\n"))
	if e.Declared != "" {
		fmt.Fprint(w, out.Wrap(fmt.Sprintf("  declared as %s\n", e.Declared)))
	}
	if e.Error != "" {
		fmt.Fprintf(w, "  %s\n", out.Red("! "+term.Clean(e.Error)))
	}
	if e.Chosen {
		fmt.Fprintf(w, "  shown as %s, as set with 'unwire show --as'\n  types that the traffic suggests:\n", e.Type)
	}
	// The features are log-odds contributions; their sum determines the probability.
	if len(e.Readings) > 0 {
		fmt.Fprint(w, out.Wrap("  "+out.Dim("Below each type is its evidence: a positive number supports the type, a negative number contradicts it. The type with the highest sum is the most probable: if its sum is 2.3 higher than that of another type, it is 10 times as probable.")+"\n"))
	}
	for _, r := range e.Readings {
		fmt.Fprintf(w, "  %-15s probability %.3f\n", r.Type, r.P)
		for _, f := range r.Why {
			fmt.Fprint(w, out.Wrap(fmt.Sprintf("      %+9.2f  %s\n", f.Weight, f.Name)))
		}
	}
	if about := strings.TrimSpace(e.Form + e.Shape); about != "" || e.Note != "" {
		fmt.Fprint(w, out.Wrap(fmt.Sprintf("  looks like: %s\n", term.Clean(strings.TrimSpace(about+" "+e.Note)))))
	}
	if e.Settle != "" {
		fmt.Fprint(w, out.Wrap(fmt.Sprintf("  what would decide between the types: %s\n", e.Settle)))
	}
}

// evidenceText describes from how many messages and values the type of a field was inferred.
func evidenceText(e *contract.Explanation) string {
	s := fmt.Sprintf("%s of the field", app.Counted(e.Occurs, "value"))
	if e.Most > 1 {
		s += fmt.Sprintf(", up to %d in one message", e.Most)
	}
	return s + " in " + app.Counted(e.Messages, "message")
}
