package contract

import (
	"unwire/replay/probe"
	"unwire/replay/probe/oracle"
)

// ProbePlan is what a probe would send.
type ProbePlan struct {
	version
	*oracle.Plan
}

// ProbeResult is what a probe learnt: the object that is also written as a file, and
// read from there.
type ProbeResult struct{ *probe.Result }

func (r *ProbeResult) setVersion() { r.V = 1 }

// VerifyPlan is what a verification would send first.
type VerifyPlan struct {
	version
	*oracle.VerifyPlan
}

// Verification is what a server's parser made of the definition of a request.
type Verification struct {
	version
	*probe.Verification
}
