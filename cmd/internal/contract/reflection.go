package contract

// ReflectionAnswer is the event of a request that reflection has answered or forwarded.
type ReflectionAnswer struct {
	// version adds the member v, the version number of the JSON format.
	version

	// Event is "answered".
	Event string `json:"event"`

	// Path is the path of the request, such as /package.Service/Method.
	Path string `json:"path"`

	// By is where the answer came from: "definitions" for a request for server reflection, "server" for a
	// forwarded request, or "unwire" for an error of unwire itself.
	By string `json:"by"`

	// Reason is why unwire answered with an error; missing if it did not.
	Reason string `json:"reason,omitempty"`
}
