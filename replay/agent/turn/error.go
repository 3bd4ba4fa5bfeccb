package turn

import (
	"errors"
	"time"
)

// An Error is why a request was refused or a turn broke off. Front ends translate it
// to the form and the status of their API.
type Error struct {
	Kind Kind
	// Message is for the user: what failed, and what to do.
	Message string
	// Param is the request's parameter that is wrong, such as "messages.3.content"; ""
	// if no single one is.
	Param string
	// Code is a short name of the cause for programs, such as "outdated_client"; "" for
	// none.
	Code string
	// RetryAfter is how long the upstream asks to wait; 0 if it did not say.
	RetryAfter time.Duration
	// Err is the cause, for errors.Is; nil for none.
	Err error
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// A Kind is a class of errors. The comment behind each is its HTTP status.
type Kind int

// The kinds.
const (
	Internal       Kind = iota // 500
	Invalid                    // 400
	Unauthorized               // 401
	Forbidden                  // 403
	NotFound                   // 404
	TooLarge                   // 413
	RateLimited                // 429
	Overloaded                 // 503, "overloaded" where an API has that word
	Upstream                   // 502: the upstream failed or broke off
	Timeout                    // 504
	ContextTooLong             // 400: the conversation does not fit the model
)

var statuses = [...]int{500, 400, 401, 403, 404, 413, 429, 503, 502, 504, 400}

// Status returns the HTTP status of the kind.
func (k Kind) Status() int {
	if k < 0 || int(k) >= len(statuses) {
		return statuses[Internal]
	}
	return statuses[k]
}

// AsError returns err as an *Error: itself, or one of kind Internal that wraps it.
func AsError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Kind: Internal, Message: err.Error(), Err: err}
}
