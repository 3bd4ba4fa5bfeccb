// Package responses is the gateway's front end for OpenAI's Responses API:
// POST /v1/responses, as a stream of events and as one JSON answer.
//
// A request becomes a turn.Request for front.Core, and the events of the turn become
// output items, each announced, filled by deltas, and finished:
//
//	turn.Thinking  a reasoning item with a summary
//	turn.Text      a message item
//	turn.Calling   a function_call item, or a custom_tool_call item
//	turn.Ended     response.completed or response.incomplete, with the usage
//
// A turn that breaks ends in response.failed and an error event.
//
// Responses are not stored. So that a client can continue one by previous_response_id,
// the transcript is kept in memory for a while, for the client's own key, unless the
// request says store: false.
//
// Source: the API's schema as the official client github.com/openai/openai-go has it,
// and the requests of codex and the openai SDK.
package responses

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"unwire/replay/agent/turn"
	"unwire/replay/gateway/front"
	"unwire/replay/gateway/openai"
)

// Options limit how long the transcripts of responses are kept in memory, so that requests can continue
// them. A field that is zero has its default.
type Options struct {
	// Idle is how long a transcript is kept after its response. Default: 15 minutes.
	Idle time.Duration
	// MaxKept is the number of transcripts that are kept; above it, the oldest is dropped. Default:
	// 256.
	MaxKept int
}

// A handler serves OpenAI's Responses API.
type handler struct {
	// core runs the turns.
	core front.Core

	// kept are the transcripts of recent responses.
	kept *transcripts
}

// New returns a handler for OpenAI's Responses API, whose paths begin with /v1/responses. For other
// paths it responds with an error in the API's form.
func New(core front.Core, o Options) http.Handler {
	h := &handler{core: core, kept: newTranscripts(o)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/responses", h.create)
	mux.HandleFunc("GET /v1/responses/{id}", h.get)
	mux.HandleFunc("DELETE /v1/responses/{id}", h.delete)
	mux.HandleFunc("/", openai.NoRoute)
	return mux
}

// A client identifies the client of a stored transcript by the hash of its API key, so that clients
// cannot read each other's transcripts.
type client [sha256.Size]byte

// clientOf returns the identity of the client that sent a request.
func clientOf(r *http.Request) client {
	return sha256.Sum256([]byte(r.Header.Get("Authorization") + "\n" + r.Header.Get("X-Api-Key")))
}

// create handles POST /v1/responses.
func (h *handler) create(w http.ResponseWriter, r *http.Request) {
	body, err := front.ReadBody(w, r)
	if err != nil {
		openai.WriteError(w, err)
		return
	}
	caller := clientOf(r)
	req, err := parse(body, func(id string) ([]turn.Message, bool) { return h.kept.find(caller, id) })
	if err != nil {
		openai.WriteError(w, err)
		return
	}
	ctx := r.Context()

	t := openai.Start(w, r, h.core, &req.turn, &req.notes)
	if t == nil {
		return
	}
	defer t.Close()

	// A stored response can be continued by its id in a later request.
	b := newBuilder(req, req.turn.Model)
	if req.store {
		b.onEnd = func(answer turn.Message) {
			h.kept.keep(caller, b.response.ID, append(req.transcript[:len(req.transcript):len(req.transcript)], answer))
		}
	}
	if req.stream {
		b.stream(ctx, w, t)
		return
	}
	b.answer(ctx, w, t)
}

// stream writes the response to a turn as server-sent events. If the turn fails before the first event,
// the response is an error with its HTTP status.
func (b *builder) stream(ctx context.Context, w http.ResponseWriter, t front.Turn) {
	events := front.NewEvents(w)
	b.emit = events.Send
	err := b.run(ctx, t, func() error {
		if err := b.begin(); err != nil {
			return err
		}
		return events.Comment("waiting for the upstream")
	})
	switch {
	case err == nil || isGone(ctx, err):
	case events.Started():
		b.fail(turn.AsError(err))
	default:
		openai.WriteError(w, turn.AsError(err))
	}
}

// answer writes the response to a turn as one JSON object.
func (b *builder) answer(ctx context.Context, w http.ResponseWriter, t front.Turn) {
	err := b.run(ctx, t, nil)
	switch {
	case err == nil:
		_ = front.WriteJSON(w, http.StatusOK, b.response)
	case !isGone(ctx, err):
		openai.WriteError(w, turn.AsError(err))
	}
}

// isGone reports whether an error only means that the client has disconnected.
func isGone(ctx context.Context, err error) bool {
	var failed *turn.Error
	return ctx.Err() != nil && !errors.As(err, &failed)
}

// get handles GET /v1/responses/{id}: the response is never found, because unwire does not store
// responses.
func (h *handler) get(w http.ResponseWriter, r *http.Request) {
	openai.WriteError(w, notFound(r.PathValue("id")))
}

// delete handles DELETE /v1/responses/{id}: it deletes the stored transcript of a response.
func (h *handler) delete(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	if !h.kept.drop(clientOf(r), id) {
		openai.WriteError(w, notFound(id))
		return
	}
	_ = front.WriteJSON(w, http.StatusOK, map[string]any{"id": id, "object": "response", "deleted": true})
}

// notFound returns the error for a response id that is not known.
func notFound(id string) *turn.Error {
	name, err := json.Marshal(id[:min(len(id), 80)])
	if err != nil {
		name = nil
	}
	return &turn.Error{Kind: turn.NotFound, Param: "response_id", Code: "not_found", Message: "Response with id " + string(name) + " not found: unwire does not store responses."}
}
