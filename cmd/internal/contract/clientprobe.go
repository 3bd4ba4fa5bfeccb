package contract

import "unwire/replay/clientprobe"

// ClientProbePlan is the output of `unwire probe-client --dry-run`: what the command would run.
type ClientProbePlan struct {
	// version adds the member v, the version number of the JSON format.
	version
	// Plan lists the runs of the client that the command would make; its fields become members of the JSON object.
	*clientprobe.Plan
}

// ClientProbe is the result of `unwire probe-client`: which fields of a server's responses a client
// reads.
type ClientProbe struct {
	// version adds the member v, the version number of the JSON format.
	version

	// Client is the command line of the client.
	Client []string `json:"client"`

	// Isolated means that the client ran in a network namespace in which only the mock answers.
	Isolated bool `json:"isolated"`

	// Result has the fields that the client was found to read; its fields become members of the JSON object.
	*clientprobe.Result
}
