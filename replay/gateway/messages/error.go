package messages

import (
	"net/http"
	"strconv"
	"time"

	"unwire/replay/agent/turn"
	"unwire/replay/gateway/front"
)

// methodNotAllowed is the code of the error for a wrong HTTP method; its status is 405.
const methodNotAllowed = "method_not_allowed"

// statusOverloaded is the HTTP status that this API uses for an overloaded service. Clients treat it
// differently from 503.
const statusOverloaded = 529

// errorTypes are the API's names for the kinds of errors, indexed by turn.Kind.
var errorTypes = [...]string{
	turn.Internal:       "api_error",
	turn.Invalid:        "invalid_request_error",
	turn.Unauthorized:   "authentication_error",
	turn.Forbidden:      "permission_error",
	turn.NotFound:       "not_found_error",
	turn.TooLarge:       "request_too_large",
	turn.RateLimited:    "rate_limit_error",
	turn.Overloaded:     "overloaded_error",
	turn.Upstream:       "api_error",
	turn.Timeout:        "timeout_error",
	turn.ContextTooLong: "invalid_request_error",
}

// An errorBody is an error in the form of this API, both as a response body and as an event of a
// stream.
type errorBody struct {
	// Type is always "error".
	Type string `json:"type"`

	// Error describes the error.
	Error errorDetail `json:"error"`

	// RequestID is the id of the response.
	RequestID string `json:"request_id"`
}

// An errorDetail is the type and the text of an error.
type errorDetail struct {
	// Type is the API's name for the kind of error.
	Type string `json:"type"`

	// Message is the text of the error for humans.
	Message string `json:"message"`
}

// newErrorBody converts an error to the form of this API. requestID is the id of the response.
func newErrorBody(requestID string, e *turn.Error) errorBody {
	kind := e.Kind
	if kind < 0 || int(kind) >= len(errorTypes) {
		kind = turn.Internal
	}
	message := e.Message
	if kind == turn.ContextTooLong {
		// Clients look for these words, and shorten the conversation.
		message = "prompt is too long: " + message
	}
	return errorBody{Type: "error", Error: errorDetail{Type: errorTypes[kind], Message: message}, RequestID: requestID}
}

// WriteError writes e as the response, in the form of this API and with its HTTP status. Nothing may
// have been written before.
func WriteError(w http.ResponseWriter, e *turn.Error) {
	writeError(w, randomID("req_"), e)
}

// writeError is WriteError with the id of the request.
func writeError(w http.ResponseWriter, requestID string, e *turn.Error) {
	status := e.Kind.Status()
	switch {
	case e.Kind == turn.Overloaded:
		status = statusOverloaded
	case e.Code == methodNotAllowed:
		status = http.StatusMethodNotAllowed
	}
	w.Header().Set("Request-Id", requestID)
	if e.RetryAfter > 0 {
		seconds := (e.RetryAfter + time.Second - 1) / time.Second
		w.Header().Set("Retry-After", strconv.FormatInt(int64(seconds), 10))
	}
	// A client that has gone needs no answer.
	_ = front.WriteJSON(w, status, newErrorBody(requestID, e))
}
