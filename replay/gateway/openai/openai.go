// Package openai holds what the two front ends of OpenAI's APIs have in common: the
// form of errors, reading objects of a request with the path that an error names,
// tools, images, and building a transcript.
//
// It is used by replay/gateway/chat and replay/gateway/responses, and by the server for
// errors that occur before a front end is reached, such as a wrong API key.
package openai

import (
	"crypto/rand"
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"time"

	"unwire/replay/agent/turn"
	"unwire/replay/gateway/front"
)

// An errorObject is an error in the form of OpenAI's APIs.
type errorObject struct {
	// Message describes the error.
	Message string `json:"message"`

	// Type is the API's name for the kind of error.
	Type string `json:"type"`

	// Param is the path of the invalid parameter; null if there is none.
	Param *string `json:"param"`

	// Code is a short name of the cause for programs; null if there is none.
	Code *string `json:"code"`
}

// An ErrorBody is the body of a response that is an error.
type ErrorBody struct {
	// Error is the error object of the API.
	Error errorObject `json:"error"`
}

// kinds are type and default code of each kind of error, as OpenAI's servers name them. The default
// code is used if an error has none of its own.
var kinds = map[turn.Kind]struct{ typ, code string }{
	turn.Internal:       {typ: "server_error"},
	turn.Invalid:        {typ: "invalid_request_error"},
	turn.Unauthorized:   {typ: "authentication_error", code: "invalid_api_key"},
	turn.Forbidden:      {typ: "permission_error"},
	turn.NotFound:       {typ: "invalid_request_error", code: "not_found"},
	turn.TooLarge:       {typ: "invalid_request_error", code: "request_too_large"},
	turn.RateLimited:    {typ: "rate_limit_error", code: "rate_limit_exceeded"},
	turn.Overloaded:     {typ: "server_error", code: "server_is_overloaded"},
	turn.Upstream:       {typ: "server_error", code: "upstream_error"},
	turn.Timeout:        {typ: "server_error", code: "timeout"},
	turn.ContextTooLong: {typ: "invalid_request_error", code: "context_length_exceeded"},
}

// ErrorOf converts an error to the API's error object.
func ErrorOf(err *turn.Error) errorObject {
	kind, ok := kinds[err.Kind]
	if !ok {
		kind = kinds[turn.Internal]
	}
	code := err.Code
	// Clients shorten the conversation when they see this code, whatever the upstream
	// calls it.
	if code == "" || err.Kind == turn.ContextTooLong {
		code = kind.code
	}
	return errorObject{Message: err.Message, Type: kind.typ, Param: optional(err.Param), Code: optional(code)}
}

// optional returns nil, i.e. JSON null, for an empty text.
func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// WriteError writes an error as the whole response, with its HTTP status. If the client has
// disconnected, it writes nothing.
func WriteError(w http.ResponseWriter, err *turn.Error) {
	if err.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.FormatFloat(math.Ceil(err.RetryAfter.Seconds()), 'f', 0, 64))
	}
	_ = front.WriteJSON(w, err.Kind.Status(), ErrorBody{Error: ErrorOf(err)})
}

// NoRoute responds with an error to requests for a path or method that a front end does not have.
func NoRoute(w http.ResponseWriter, r *http.Request) {
	WriteError(w, &turn.Error{Kind: turn.NotFound, Code: "unknown_url", Message: "there is no " + r.Method + " " + strconv.QuoteToASCII(r.URL.Path) + " here"})
}

// Start starts the turn for a request: it chooses the model, and lists parameters without effect in a
// response header. If that fails, it writes the error as the response and returns nil.
func Start(w http.ResponseWriter, r *http.Request, core front.Core, req *turn.Request, notes *Notes) front.Turn {
	more, err := front.ChooseModel(r.Context(), core, req)
	if err != nil {
		WriteError(w, err)
		return nil
	}
	front.WriteNotes(w, append(more, notes.List()...))

	t, e := core.Turn(r.Context(), req)
	if e != nil {
		WriteError(w, turn.AsError(e))
		return nil
	}
	return t
}

// NewID returns a random identifier with a prefix, such as chatcmpl-.
func NewID(prefix string) string { return prefix + rand.Text() }

// Now returns the current time in seconds since 1970, as the APIs use it.
func Now() int64 { return time.Now().Unix() }

// Marshal encodes v without HTML escapes. v must be of a type that always encodes.
func Marshal(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return b
}

// Cut returns the error for a turn that stopped without an Ended event.
func Cut() *turn.Error {
	return &turn.Error{Kind: turn.Upstream, Code: "answer_cut", Message: "the answer ended unexpectedly; send the request again"}
}

// Arguments returns the arguments of a tool call in the form of the APIs: as a string that contains
// JSON.
func Arguments(c turn.Call) string {
	if len(c.Arguments) == 0 {
		return "{}"
	}
	return string(c.Arguments)
}
