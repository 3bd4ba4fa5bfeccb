package contract

import "unwire/replay/clientprobe"

// ClientProbePlan is what probe-client would run.
type ClientProbePlan struct {
	version
	*clientprobe.Plan
}

// ClientProbe is what probe-client found: which fields of a server's answers a client reads.
type ClientProbe struct {
	version

	// Client is the command.
	Client []string `json:"client"`

	// Isolated means that the client ran in a network namespace in which only the mock answers.
	Isolated bool `json:"isolated"`

	*clientprobe.Result
}
