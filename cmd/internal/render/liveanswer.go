package render

import (
	"fmt"
	"strings"

	"unwire/cmd/internal/term"
	"unwire/decode/transcript/follow"
)

// An AnswerWriter writes answers while they are recorded: their text to Out, and which
// exchanges they are of to Err.
type AnswerWriter struct {
	Out, Err *term.Output

	// current is the exchange whose answer is on the last line of Out; 0 for none.
	current int64
}

// Update writes what an answer has more than was written.
func (a *AnswerWriter) Update(u *follow.Update) error {
	if !u.Changed {
		return nil
	}
	more := u.More
	if a.current != u.Exchange.ID {
		if a.current != 0 {
			fmt.Fprintln(a.Out)
		}
		fmt.Fprintf(a.Err, "#%d %s\n", u.Exchange.ID, term.Clean(u.Exchange.CallName()))
		if a.current = u.Exchange.ID; !u.Reset && u.Before != "" {
			more = "… " + more
		}
	}
	if u.Reset {
		fmt.Fprintln(a.Err, "\nunwire: that was not the answer; it is rather:")
	}
	_, err := fmt.Fprint(a.Out, term.CleanText(more))
	return err
}

// End writes the rest of the answer of an exchange that has ended.
func (a *AnswerWriter) End(u *follow.Update) error {
	if err := a.Update(u); err != nil {
		return err
	}
	ex, tr := u.Exchange, u.Transcript
	if a.current == ex.ID && tr.Answer != "" && !strings.HasSuffix(tr.Answer, "\n") {
		fmt.Fprintln(a.Out)
	}
	if a.current == ex.ID {
		a.current = 0
	}
	if tr.Error != nil {
		fmt.Fprintf(a.Err, "#%d ended %s\n", ex.ID, endedText(tr.Error.Code, tr.Error.Message))
	}
	return nil
}
