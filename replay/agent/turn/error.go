package turn

import (
	"errors"
	"time"
)

// An Error describes why a request was refused or a turn failed. Front ends translate it into the
// error format and the status of their API.
type Error struct {
	// Kind is the class of the error, which determines the HTTP status.
	Kind Kind
	// Message is for the user: what failed, and what to do next.
	Message string
	// Param is the invalid parameter of the request, such as "messages.3.content"; "" if there is no
	// single one.
	Param string
	// Code is a short name of the cause for programs, such as "outdated_client"; "" for
	// none.
	Code string
	// RetryAfter is how long the upstream server asks clients to wait; 0 if unknown.
	RetryAfter time.Duration
	// Err is the underlying error; nil if there is none.
	Err error
}

// Error returns the error message.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the underlying error.
func (e *Error) Unwrap() error { return e.Err }

// A Kind is a class of errors; each corresponds to an HTTP status.
type Kind int

// The kinds. Each has one HTTP status.
const (
	// Internal is a defect of unwire: status 500.
	Internal Kind = iota
	// Invalid is a malformed request: 400.
	Invalid
	// Unauthorized is a missing or rejected credential: 401.
	Unauthorized
	// Forbidden is an action that is not allowed: 403.
	Forbidden
	// NotFound is an unknown model, conversation or call: 404.
	NotFound
	// TooLarge is a request above a limit: 413.
	TooLarge
	// RateLimited means that the client sent too many requests (HTTP 429).
	RateLimited
	// Overloaded is 503, or "overloaded" in APIs that have that error.
	Overloaded
	// Upstream means that the upstream failed or closed the connection: 502.
	Upstream
	// Timeout means that the upstream server did not respond in time (HTTP 504).
	Timeout
	// ContextTooLong means that the conversation does not fit the model: 400.
	ContextTooLong
)

// statuses are the HTTP statuses, indexed by Kind.
var statuses = [...]int{500, 400, 401, 403, 404, 413, 429, 503, 502, 504, 400}

// Status returns the HTTP status that corresponds to the kind.
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
