package outbound

import (
	"errors"
	"time"
)

// A Failure describes why a request got no response; it is an error.
type Failure struct {
	// Refused means that the policy does not allow the address; nothing was sent.
	Refused bool
	// Reason is the kind of failure, for programs; "" if the request was refused locally.
	Reason Reason
	// Message describes the failure for the user.
	Message string
}

// Error returns the message in the form in which a capture stores it.
func (f *Failure) Error() string {
	if f.Reason.Unsent() {
		return ErrNotSent.Error() + ": " + f.Message
	}
	return f.Message
}

// Is makes the failure match ErrRefused if the request was refused, and ErrNotSent if nothing was sent.
func (f *Failure) Is(target error) bool {
	return f.Refused && target == ErrRefused || f.Reason.Unsent() && target == ErrNotSent
}

// Failure returns the description of a request that ended with err before any response arrived. limit
// is the request's timeout.
func (at *Progress) Failure(err error, limit time.Duration) *Failure {
	switch fault := versionFault(err); {
	case fault != "":
		return &Failure{Reason: NoAnswer, Message: fault}
	case at.sent.Load():
		return &Failure{Reason: NoAnswer, Message: err.Error() + "; the server may have executed the request"}
	case errors.Is(err, ErrRefused):
		return &Failure{Refused: true, Message: err.Error()}
	}
	reason, message := at.unsent(err, limit)
	return &Failure{Reason: reason, Message: message}
}
