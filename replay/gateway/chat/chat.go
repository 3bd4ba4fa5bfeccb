// Package chat is the gateway's front end for OpenAI's Chat Completions API:
// POST /v1/chat/completions, as a stream and as one JSON answer, and GET /v1/models.
//
// It translates and keeps nothing. A request becomes a turn.Request for front.Core, and
// the events of the turn become chunks:
//
//	turn.Text      delta.content
//	turn.Thinking  delta.reasoning_content, which clients of reasoning models read
//	turn.Calling   delta.tool_calls: one chunk with index, type, id and name, one with
//	               the arguments
//	turn.Ended     finish_reason, and the usage chunk if it was asked for
//
// A turn that breaks ends in an error event, without finish_reason and without [DONE].
//
// Source: the API's schema as the official client github.com/openai/openai-go has it,
// and the requests of opencode, the ai SDK, the openai SDK and LangChain.
package chat

import (
	"errors"
	"net/http"

	"unwire/replay/agent/turn"
	"unwire/replay/gateway/front"
	"unwire/replay/gateway/openai"
)

// A handler serves OpenAI's Chat Completions API; core runs the turns.
type handler struct {
	// core runs the turns.
	core front.Core
}

// New returns a handler for OpenAI's Chat Completions API and its list of models, whose paths begin
// with /v1/. For other paths it responds with an error in the API's form.
func New(core front.Core) http.Handler {
	h := &handler{core: core}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", h.completions)
	mux.HandleFunc("GET /v1/models", h.models)
	mux.HandleFunc("GET /v1/models/{id...}", h.model)
	mux.HandleFunc("/", openai.NoRoute)
	return mux
}

// A request is the parsed body of POST /v1/chat/completions.
type request struct {
	// turn is the request in the form for the gateway's core.
	turn turn.Request
	// stream asks for server-sent events, and includeUsage for a last event with the token usage.
	stream, includeUsage bool

	// notes are the parameters that had no effect, for a response header.
	notes openai.Notes
}

// completions handles POST /v1/chat/completions.
func (h *handler) completions(w http.ResponseWriter, r *http.Request) {
	body, err := front.ReadBody(w, r)
	if err != nil {
		openai.WriteError(w, err)
		return
	}
	req, err := parse(body)
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

	head := chunk{ID: openai.NewID("chatcmpl-"), Created: openai.Now(), Model: req.turn.Model}
	if req.stream {
		streamTurn(ctx, w, t, head, req.includeUsage)
		return
	}

	// A response that is not streamed needs the whole turn first.
	a, e := collect(ctx, t)
	var failed *turn.Error
	switch {
	case e == nil:
		_ = front.WriteJSON(w, http.StatusOK, a.completion(head))
	// A canceled client reads no answer, so nothing is written to it.
	case errors.As(e, &failed) || ctx.Err() == nil:
		openai.WriteError(w, turn.AsError(e))
	}
}
