package outbound

import (
	"errors"
	"time"
)

// A Failure says why a request got no answer.
type Failure struct {
	Refused bool   // it was not sent: the address may not be sent to
	Reason  Reason // "" if it was refused
	Message string
}

// Error is how a capture words it.
func (f *Failure) Error() string {
	if f.Reason.Unsent() {
		return ErrNotSent.Error() + ": " + f.Message
	}
	return f.Message
}

// Is reports a refusal as ErrRefused, and what was not sent as ErrNotSent.
func (f *Failure) Is(target error) bool {
	return f.Refused && target == ErrRefused || f.Reason.Unsent() && target == ErrNotSent
}

// Failure returns what a request came to that err ended before any answer. limit
// is the time that the request had.
func (at *Progress) Failure(err error, limit time.Duration) *Failure {
	switch {
	case at.sent.Load():
		return &Failure{Reason: NoAnswer, Message: err.Error() + "; the server may have executed the request"}
	case errors.Is(err, ErrRefused):
		return &Failure{Refused: true, Message: err.Error()}
	}
	reason, message := at.unsent(err, limit)
	return &Failure{Reason: reason, Message: message}
}
