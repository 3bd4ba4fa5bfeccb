package messages

import (
	"net/http"
	"strconv"
	"time"

	"unwire/replay/agent/turn"
	"unwire/replay/gateway/front"
)

// methodNotAllowed is the code of the error for a wrong method, which has a status of
// its own.
const methodNotAllowed = "method_not_allowed"

// statusOverloaded is the status that the API has for an overloaded service. Clients
// treat it differently from 503.
const statusOverloaded = 529

// errorTypes are the API's words for the kinds of errors.
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

// An errorBody is the API's form of an error, as an answer and as an event.
type errorBody struct {
	Type      string      `json:"type"`
	Error     errorDetail `json:"error"`
	RequestID string      `json:"request_id"`
}

type errorDetail struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

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

// WriteError answers with e in the form of this API. It must be called before anything
// else is written.
func WriteError(w http.ResponseWriter, e *turn.Error) {
	writeError(w, randomID("req_"), e)
}

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
