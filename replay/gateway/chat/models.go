package chat

import (
	"net/http"

	"unwire/replay/agent/turn"
	"unwire/replay/gateway/front"
	"unwire/replay/gateway/openai"
)

// A model is an entry in the API's list of models.
type model struct {
	// ID is the id or an alias of the model.
	ID string `json:"id"`

	// Object is the type of the JSON object: "model".
	Object string `json:"object"`
	// Created is always 0, because the upstream does not report when a model was made.
	Created int64 `json:"created"`

	// OwnedBy is always "unwire".
	OwnedBy string `json:"owned_by"`
}

// newModel returns the list entry for a model's id or alias.
func newModel(id string) model { return model{ID: id, Object: "model", OwnedBy: "unwire"} }

// models handles GET /v1/models. Each alias of a model is an entry of its own, since some clients only
// accept names that are listed.
func (h *handler) models(w http.ResponseWriter, r *http.Request) {
	list, err := h.core.Models(r.Context())
	if err != nil {
		openai.WriteError(w, turn.AsError(err))
		return
	}
	data := make([]model, 0, len(list))
	seen := make(map[string]bool, len(list))
	for _, m := range list {
		for _, name := range append([]string{m.ID}, m.Aliases...) {
			if !seen[name] {
				seen[name] = true
				data = append(data, newModel(name))
			}
		}
	}
	_ = front.WriteJSON(w, http.StatusOK, map[string]any{"object": "list", "data": data})
}

// model handles GET /v1/models/{id}, where id may be an alias.
func (h *handler) model(w http.ResponseWriter, r *http.Request) {
	m, err := h.core.Model(r.Context(), r.PathValue("id"))
	if err != nil {
		openai.WriteError(w, turn.AsError(err))
		return
	}
	_ = front.WriteJSON(w, http.StatusOK, newModel(m.ID))
}
