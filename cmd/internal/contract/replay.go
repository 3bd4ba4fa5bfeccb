package contract

import "unwire/replay"

// ReplayPlan is what a replay would send.
type ReplayPlan struct {
	version
	*replay.Description
}

// ReplayResult is how a replay went.
type ReplayResult struct {
	version
	*replay.Result
}

// Credential is where a secret is found, and until when it can be used. It never has
// the value.
type Credential struct {
	version
	Reference string `json:"reference"`
	What      string `json:"what"` // "token", "API key"
	// "found", "missing", "expired", "expiring" (too soon to be sent)
	State string `json:"state"`
	From  string `json:"from"` // where it is; "" if it is nowhere
	// in the form of RFC 3339; "" where it does not say
	Expires  string   `json:"expires"`
	Issuer   string   `json:"issuer"`
	Audience []string `json:"audience"`
	// that it may be sent to; empty: those that --allow-host names
	Hosts []string `json:"hosts"`
	Error string   `json:"error"`
}

// Experiment is what an experiment of a suite came to.
type Experiment struct {
	version
	File  string `json:"file"`
	About string `json:"about,omitempty"`
	OK    bool   `json:"ok"`
	// expectations that were not met, or why it was not run
	Failed   []string      `json:"failed"`
	Result   *ReplayResult `json:"result,omitempty"`
	Duration float64       `json:"duration_ms"`
}

func (e *Experiment) setVersion() {
	e.version.setVersion()
	if e.Result != nil {
		e.Result.setVersion()
	}
}
