package contract

import "unwire/replay/clientprobe"

// ClientProbePlan is the output of `unwire probe-client --dry-run`: what the command would run.
type ClientProbePlan struct {
	version
	*clientprobe.Plan
}

// ClientProbe is the result of `unwire probe-client`: which fields of a server's responses a client
// reads.
type ClientProbe struct {
	version

	// Client is the command line of the client.
	Client []string `json:"client"`

	// Isolated means that the client ran in a network namespace in which only the mock answers.
	Isolated bool `json:"isolated"`

	*clientprobe.Result
}
