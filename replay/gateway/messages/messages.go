// Package messages is the gateway's front end for Anthropic's Messages API.
//
// It serves POST /v1/messages, as a stream and as one JSON answer, and GET /v1/models
// in the form that this API has. POST /v1/messages/count_tokens answers with the API's
// own not-found error, because nothing counts tokens before the upstream has answered.
//
//	mux.Handle("/v1/messages", messages.New(core))
//
// A request's body becomes a turn.Request, whose events become content blocks. The same body always
// becomes the same turn.Request: the core recognises a conversation by its transcript. Params lists
// how unwire treats every parameter. The package is used by the gateway's server; it keeps nothing
// between requests.
package messages

import (
	"crypto/rand"
	"math/big"
	"net/http"

	"unwire/replay/agent/turn"
	"unwire/replay/gateway/front"
)

// VersionHeader is a header that every request of this API has. It distinguishes requests for
// /v1/models from those of OpenAI's API, which has the same path.
const VersionHeader = "Anthropic-Version"

// A handler serves Anthropic's Messages API.
type handler struct {
	// core runs the turns.
	core front.Core
	// newID returns a new identifier that begins with prefix.
	newID func(prefix string) string
}

// New returns a handler of /v1/messages, /v1/messages/count_tokens, /v1/models and
// /v1/models/{id}. It does not check the API key.
func New(core front.Core) http.Handler {
	return newHandler(core, randomID)
}

// newHandler is New with a function that generates ids, which tests replace.
func newHandler(core front.Core, newID func(prefix string) string) http.Handler {
	h := &handler{core: core, newID: newID}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/messages", h.messages)
	mux.HandleFunc("POST /v1/messages/count_tokens", h.countTokens)
	mux.HandleFunc("GET /v1/models", h.models)
	mux.HandleFunc("GET /v1/models/{id...}", h.model)

	// The mux's own answers to a wrong path or method are plain text.
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := mux.Handler(r); pattern == "" {
			writeError(w, h.newID("req_"), h.noRoute(mux, r))
			return
		}
		if r.Header.Get(VersionHeader) == "" {
			writeError(w, h.newID("req_"), &turn.Error{Kind: turn.Invalid, Param: "anthropic-version", Message: "anthropic-version: header is required, such as anthropic-version: 2023-06-01"})
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// noRoute returns the error for a request with an unknown path or a wrong method.
func (h *handler) noRoute(mux *http.ServeMux, r *http.Request) *turn.Error {
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := mux.Handler(other); pattern != "" {
			return &turn.Error{Kind: turn.Invalid, Code: methodNotAllowed, Message: r.URL.Path + " takes " + method + " requests"}
		}
	}
	return &turn.Error{Kind: turn.NotFound, Message: "there is no " + r.URL.Path + " here"}
}

// countTokens responds with an error, because tokens cannot be counted.
func (h *handler) countTokens(w http.ResponseWriter, _ *http.Request) {
	writeError(w, h.newID("req_"), &turn.Error{
		Kind:    turn.NotFound,
		Message: "tokens cannot be counted in advance: only the upstream counts them, and unwire does not estimate",
	})
}

// messages handles POST /v1/messages.
func (h *handler) messages(w http.ResponseWriter, r *http.Request) {
	id := h.newID("req_")
	w.Header().Set("Request-Id", id)
	body, err := front.ReadBody(w, r)
	if err != nil {
		writeError(w, id, err)
		return
	}
	request, err := parse(body)
	if err != nil {
		writeError(w, id, err)
		return
	}

	// The model may be replaced by one of the upstream, which a note reports.
	notes, err := front.ChooseModel(r.Context(), h.core, &request.turn)
	if err != nil {
		writeError(w, id, err)
		return
	}

	// Errors until here have a status; from here on, a stream may have started.
	t, failure := h.core.Turn(r.Context(), &request.turn)
	if failure != nil {
		writeError(w, id, turn.AsError(failure))
		return
	}
	defer t.Close()
	front.WriteNotes(w, append(notes, request.notes...))
	a := newAnswer(h.newID("msg_"), request.turn.Model, request.thinking, isBeta(r))
	if request.stream {
		stream(r.Context(), w, id, t, a)
		return
	}
	whole(r.Context(), w, id, t, a)
}

// isBeta reports whether a request asks for the beta form of the API, with ?beta=true.
func isBeta(r *http.Request) bool { return r.URL.Query().Get("beta") == "true" }

// base62 are the characters of random ids.
const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// randomID returns a random id with this prefix, in the format of the API's own ids.
func randomID(prefix string) string {
	id := []byte(prefix)
	for range 24 {
		// rand.Int never fails: crypto/rand ends the program instead.
		n, _ := rand.Int(rand.Reader, big.NewInt(int64(len(base62))))
		id = append(id, base62[n.Int64()])
	}
	return string(id)
}
