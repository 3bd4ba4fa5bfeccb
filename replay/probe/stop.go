package probe

import (
	"errors"
	"fmt"

	"unwire/replay/outbound"
)

// A stopError ends a probe early. The results so far are returned.
type stopError struct {
	// why is the reason, for the user.
	why string
	// off means that all results are invalid, because the server's responses prove nothing.
	off bool
	// here means that only the results for the current message are invalid; other messages can still be
	// probed.
	here bool

	// reason is the kind of failure, if a request got no response.
	reason outbound.Reason
}

// Error returns the reason.
func (e *stopError) Error() string { return e.why }

// Stop returns an error that ends a probe early, with a reason formatted as by fmt.Sprintf.
func Stop(format string, args ...any) error {
	return &stopError{why: fmt.Sprintf(format, args...)}
}

// OracleOff returns the error for a server whose response to the control, i.e. to a field that cannot
// exist, looks as if that field existed. Error messages then prove nothing about the message at path
// or, if it is the request, at all. a is the response.
func OracleOff(path []int32, a *Answer) error {
	if len(path) == 0 {
		return &stopError{why: "the server's answers do not depend on the fields in the request, so unwire reports no fields: " + a.Brief(), off: true}
	}
	return &stopError{here: true, why: fmt.Sprintf("the server treats a field number that cannot exist in %s like an existing one, so unwire reports no fields of this message: %s", PathText(path), a.Brief())}
}

// NoteOracleOff reports whether err is from OracleOff about a nested message; if so, it adds a note to
// the result.
func (r *Result) NoteOracleOff(err error) bool {
	var stopped *stopError
	if !errors.As(err, &stopped) || !stopped.here {
		return false
	}
	r.Note(stopped.why)
	return true
}
