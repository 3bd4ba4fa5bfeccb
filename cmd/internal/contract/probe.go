package contract

import (
	"unwire/replay/probe"
	"unwire/replay/probe/oracle"
)

// ProbePlan describes the requests that a probe would send.
type ProbePlan struct {
	// version adds the member v, the version number of the JSON format.
	version
	// Plan describes the requests that would be sent; its fields become members of the JSON object.
	*oracle.Plan
}

// ProbeResult is the result of a probe. The same object is written to, and read from, the file of the
// probe's results.
type ProbeResult struct {
	// Result is what the probe found out about the server; its fields become members of the JSON object, including
	// the version v.
	*probe.Result
}

// setVersion sets the version number, which is in the embedded type.
func (r *ProbeResult) setVersion() { r.V = 1 }

// VerifyPlan describes the first requests that a verification would send.
type VerifyPlan struct {
	// version adds the member v, the version number of the JSON format.
	version
	// VerifyPlan describes the requests that would be sent; its fields become members of the JSON object.
	*oracle.VerifyPlan
}

// Verification is the result of checking a request's definition against a server's parser.
type Verification struct {
	// version adds the member v, the version number of the JSON format.
	version
	// Verification is the result of the check; its fields become members of the JSON object.
	*probe.Verification
}
