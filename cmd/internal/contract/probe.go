package contract

import (
	"unwire/replay/probe"
	"unwire/replay/probe/oracle"
)

// ProbePlan describes the requests that a probe would send.
type ProbePlan struct {
	version
	*oracle.Plan
}

// ProbeResult is the result of a probe. The same object is written to, and read from, the file of the
// probe's results.
type ProbeResult struct{ *probe.Result }

// setVersion sets the version number, which is in the embedded type.
func (r *ProbeResult) setVersion() { r.V = 1 }

// VerifyPlan describes the first requests that a verification would send.
type VerifyPlan struct {
	version
	*oracle.VerifyPlan
}

// Verification is the result of checking a request's definition against a server's parser.
type Verification struct {
	version
	*probe.Verification
}
