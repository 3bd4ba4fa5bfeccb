package probe

import (
	"errors"
	"fmt"

	"unwire/replay/outbound"
)

// A stopError ends a probe early. What was found so far is returned.
type stopError struct {
	why string
	// off means that all results are void, because the server's responses prove nothing.
	off bool
	// here means that the results for this message are void; other messages can still be probed.
	here bool

	// reason is the kind of failure, if a request got no response.
	reason outbound.Reason
}

func (e *stopError) Error() string { return e.why }

// Stop returns an error that ends a probe early, for the formatted reason.
func Stop(format string, args ...any) error {
	return &stopError{why: fmt.Sprintf(format, args...)}
}

// OracleOff returns the error for a server whose response to the control, a field that cannot exist,
// looks as if the field existed. Error messages then prove nothing about that message or, if it is the
// request, at all.
func OracleOff(path []int32, a *Answer) error {
	if len(path) == 0 {
		return &stopError{why: "the oracle is off: the answers do not follow from what is asked, so nothing is claimed: " + a.Brief(), off: true}
	}
	return &stopError{here: true, why: fmt.Sprintf("the oracle is off at %s: a number that cannot exist is answered as if it did, so nothing is claimed of its fields: %s", PathText(path), a.Brief())}
}

// NoteOracleOff reports whether err is from OracleOff about a nested message, and adds a note about
// it to the result.
func (r *Result) NoteOracleOff(err error) bool {
	var stopped *stopError
	if !errors.As(err, &stopped) || !stopped.here {
		return false
	}
	r.Note(stopped.why)
	return true
}
