package render

import (
	"fmt"
	"strings"

	"unwire/cmd/internal/term"
	"unwire/decode/transcript/follow"
)

// An AnswerWriter prints the answers of a language model while they are recorded: the text to Out, and to
// Err which exchange it belongs to.
type AnswerWriter struct {
	// Out receives the text of answers.
	Out *term.Output

	// Err receives diagnostics.
	Err *term.Output

	// current is the number of the exchange whose answer is on the last line of Out; 0 if that line is
	// finished.
	current int64
}

// Update prints the part of an answer that is new.
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
		fmt.Fprintln(a.Err, "\nunwire: the text above is not the answer. The answer is now:")
	}
	_, err := fmt.Fprint(a.Out, term.CleanText(more))
	return err
}

// End prints the rest of the answer in an exchange that has ended.
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
