package probe

import (
	"errors"
	"fmt"

	"unwire/replay/outbound"
)

// A stopError ends a probe early, with what was learnt.
type stopError struct {
	why string
	off bool // nothing that was learnt counts
	// nothing that was learnt of this message counts; others can be asked
	here bool

	// reason is set if a request got no answer.
	reason outbound.Reason
}

func (e *stopError) Error() string { return e.why }

// Stop ends a probe with what was learnt, and says why.
func Stop(format string, args ...any) error {
	return &stopError{why: fmt.Sprintf(format, args...)}
}

// OracleOff is for a server that answers the control of a message as if it
// existed. Of the request itself, that says that its answers follow from nothing.
func OracleOff(path []int32, a *Answer) error {
	if len(path) == 0 {
		return &stopError{why: "the oracle is off: the answers do not follow from what is asked, so nothing is claimed: " + a.Brief(), off: true}
	}
	return &stopError{here: true, why: fmt.Sprintf("the oracle is off at %s: a number that cannot exist is answered as if it did, so nothing is claimed of its fields: %s", PathText(path), a.Brief())}
}

// NoteOracleOff reports whether an error says that nothing can be claimed of one
// message, and notes it.
func (r *Result) NoteOracleOff(err error) bool {
	var stopped *stopError
	if !errors.As(err, &stopped) || !stopped.here {
		return false
	}
	r.Note(stopped.why)
	return true
}
