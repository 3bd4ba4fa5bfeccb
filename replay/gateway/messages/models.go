package messages

import (
	"net/http"
	"slices"
	"strconv"

	"unwire/replay/agent/turn"
	"unwire/replay/gateway/front"
)

// A modelInfo is an entry in the API's list of models. The upstream reports only id and name: the
// creation date is the epoch, which the API uses for unknown dates, and the other members are null.
type modelInfo struct {
	// Type is always "model".
	Type string `json:"type"`

	// ID is the id of the model, which requests name.
	ID string `json:"id"`

	// DisplayName is the name of the model for humans.
	DisplayName string `json:"display_name"`

	// CreatedAt is the epoch, which stands for an unknown date.
	CreatedAt string `json:"created_at"`

	// Capabilities is always null, like the other members that the upstream does not report.
	Capabilities any `json:"capabilities"`

	// DeprecatedAt is always null, because the upstream does not report it.
	DeprecatedAt any `json:"deprecated_at"`

	// Lifecycle is always "active".
	Lifecycle string `json:"lifecycle"`

	// Line is always null, because the upstream does not report it.
	Line any `json:"line"`

	// MaxInputTokens is always null, because the upstream does not report it.
	MaxInputTokens any `json:"max_input_tokens"`

	// MaxTokens is always null, because the upstream does not report it.
	MaxTokens any `json:"max_tokens"`

	// RetiresAt is always null, because the upstream does not report it.
	RetiresAt any `json:"retires_at"`

	// betaModel is only set in the beta form of the API.
	*betaModel
}

// A betaModel has the members that a modelInfo has in addition in the beta form of the API.
type betaModel struct {
	// AllowedFallbackModels is always null, because the upstream does not report it.
	AllowedFallbackModels any `json:"allowed_fallback_models"`
}

// newModelInfo converts a model to the API's form. beta asks for the beta form.
func newModelInfo(m turn.Model, beta bool) modelInfo {
	name := m.Name
	if name == "" {
		name = m.ID
	}
	info := modelInfo{Type: "model", ID: m.ID, DisplayName: name, CreatedAt: "1970-01-01T00:00:00Z", Lifecycle: "active"}
	if beta {
		info.betaModel = &betaModel{}
	}
	return info
}

// A modelPage is one page of the API's list of models.
type modelPage struct {
	// Data are the models on the page.
	Data []modelInfo `json:"data"`

	// HasMore means that there are models after those on the page.
	HasMore bool `json:"has_more"`

	// FirstID is the id of the first model on the page; null if the page is empty.
	FirstID *string `json:"first_id"`

	// LastID is the id of the last model on the page; null if the page is empty.
	LastID *string `json:"last_id"`
}

// The API's limits of a page.
const (
	// The default and the largest number of models on a page of the list.
	pageDefault = 20
	pageMax     = 1000
)

// models handles GET /v1/models: it responds with a page of the list of models.
func (h *handler) models(w http.ResponseWriter, r *http.Request) {
	id := h.newID("req_")
	limit := pageDefault
	query := r.URL.Query()
	if text := query.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > pageMax {
			writeError(w, id, invalid("limit", "must be from 1 to %d", pageMax))
			return
		}
		limit = n
	}
	all, err := h.core.Models(r.Context())
	if err != nil {
		writeError(w, id, turn.AsError(err))
		return
	}

	all = withAliases(all)

	// A page begins behind after_id, or ends before before_id.
	before, after := query.Get("before_id"), query.Get("after_id")
	if after != "" {
		all = all[indexOf(all, after)+1:]
	}
	more := len(all) > limit
	if before != "" {
		end := max(indexOf(all, before), 0)
		all = all[max(end-limit, 0):end]
		more = end > limit
	}
	all = all[:min(limit, len(all))]

	page := modelPage{Data: []modelInfo{}, HasMore: more}
	for _, m := range all {
		page.Data = append(page.Data, newModelInfo(m, isBeta(r)))
	}
	if len(all) > 0 {
		page.FirstID, page.LastID = &all[0].ID, &all[len(all)-1].ID
	}
	w.Header().Set("Request-Id", id)
	// A client that has gone needs no answer.
	_ = front.WriteJSON(w, http.StatusOK, page)
}

// withAliases returns the models, each followed by an entry for each of its aliases.
func withAliases(models []turn.Model) []turn.Model {
	var all []turn.Model
	for _, m := range models {
		all = append(all, m)
		for _, alias := range m.Aliases {
			name := m
			name.ID = alias
			all = append(all, name)
		}
	}
	return all
}

// indexOf returns the index of the model with this id, or -1.
func indexOf(models []turn.Model, id string) int {
	return slices.IndexFunc(models, func(m turn.Model) bool { return m.ID == id })
}

// model handles GET /v1/models/{id}, where id may be an alias.
func (h *handler) model(w http.ResponseWriter, r *http.Request) {
	id := h.newID("req_")
	m, err := h.core.Model(r.Context(), r.PathValue("id"))
	if err != nil {
		writeError(w, id, turn.AsError(err))
		return
	}
	w.Header().Set("Request-Id", id)
	// A client that has gone needs no answer.
	_ = front.WriteJSON(w, http.StatusOK, newModelInfo(m, isBeta(r)))
}
