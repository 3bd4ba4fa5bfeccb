package contract

import (
	"unwire/replay"
	"unwire/replay/suite"
)

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

// NewExperiment returns the line for an outcome; failed are the expectations that were
// not met, or why it was not run.
func NewExperiment(o *suite.Outcome, failed []string) *Experiment {
	e := &Experiment{
		File: o.File, About: o.About, OK: len(failed) == 0, Failed: failed,
		Duration: float64(o.Duration.Microseconds()) / 1000,
	}
	if o.Result != nil {
		e.Result = &ReplayResult{Result: o.Result}
	}
	return e
}

func (e *Experiment) setVersion() {
	e.version.setVersion()
	if e.Result != nil {
		e.Result.setVersion()
	}
}
