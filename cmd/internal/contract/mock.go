package contract

// MockAnswer is the event of a request that mock has answered or rejected.
type MockAnswer struct {
	// version adds the member v, the version number of the JSON format.
	version

	// Event is "answered" or "refused".
	Event string `json:"event"`

	// Method is the RPC method as "/package.Service/Method", or the HTTP method and the path.
	Method string `json:"method"`

	// Protocol is the protocol of the request, with the same values as for ls.
	Protocol string `json:"protocol"`

	// Exchange is the number of the recorded exchange whose response was sent; 0 for none.
	Exchange int64 `json:"exchange"`

	// Similarity is the similarity of the request and the recorded one, from 0 to 1.
	Similarity float64 `json:"similarity"`

	// FramesUp is the number of messages from the client.
	FramesUp int `json:"frames_up"`

	// FramesDown is the number of messages that were sent.
	FramesDown int `json:"frames_down"`

	// Substituted is the number of sent messages and headers in which recorded identifiers were replaced
	// by those of the client.
	Substituted int `json:"substituted"`

	// Code is the code of the error that mock sent instead of a response or at its end; missing for none.
	Code string `json:"code,omitempty"`

	// Reason is the message of that error.
	Reason string `json:"reason,omitempty"`

	// Complete means that the recorded response was sent to its end.
	Complete bool `json:"complete"`

	// Notes are remarks for the user.
	Notes []string `json:"notes,omitempty"`
}

// MockReport is the last event of mock.
type MockReport struct {
	// version adds the member v, the version number of the JSON format.
	version

	// Event is "ended".
	Event string `json:"event"`

	// Answered is the number of requests that got a recorded response.
	Answered int `json:"answered"`

	// Refused is the number of requests without a matching recorded response.
	Refused int `json:"refused"`

	// Used are the recorded exchanges whose responses were sent, and how often.
	Used []MockUse `json:"used"`

	// Unused are the numbers of the recorded exchanges whose responses were never sent.
	Unused []int64 `json:"unused"`

	// Skipped are the recorded exchanges whose responses cannot be sent.
	Skipped []MockSkipped `json:"skipped"`
}

// A MockUse is the number of times that the response of a recorded exchange was sent.
type MockUse struct {
	// Exchange is the number of the exchange.
	Exchange int64 `json:"exchange"`

	// Answers is the number of requests that got its response.
	Answers int `json:"answers"`
}

// A MockSkipped is a recorded exchange whose response cannot be sent.
type MockSkipped struct {
	// Exchange is the number of the exchange.
	Exchange int64 `json:"exchange"`

	// Reason says why, such as that WebSockets are not supported.
	Reason string `json:"reason"`
}
