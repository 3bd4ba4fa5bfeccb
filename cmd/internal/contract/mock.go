package contract

// MockAnswer is the event of a request that mock has answered or rejected.
type MockAnswer struct {
	version

	// Event is "answered" or "refused".
	Event string `json:"event"`

	// Method is "/package.Service/Method", or the HTTP method and the path.
	Method string `json:"method"`

	// Protocol is how the client sent its messages, as in ls.
	Protocol string `json:"protocol"`

	// Exchange is the recorded exchange that answered; 0 if none did.
	Exchange int64 `json:"exchange"`

	// Similarity is that of the request and the recorded one, from 0 to 1.
	Similarity float64 `json:"similarity"`

	// FramesUp counts the client's messages.
	FramesUp int `json:"frames_up"`

	// FramesDown counts the messages that were sent.
	FramesDown int `json:"frames_down"`

	// Substituted counts the messages and headers that were sent with identifiers of the client.
	Substituted int `json:"substituted"`

	// Code is that of the error that the client got from mock, in place of an answer or at its end.
	Code string `json:"code,omitempty"`

	// Reason is the message of that error.
	Reason string `json:"reason,omitempty"`

	// Complete means that the recorded answer was sent to its end.
	Complete bool `json:"complete"`

	// Notes are remarks in words.
	Notes []string `json:"notes,omitempty"`
}

// MockReport is the last event of mock.
type MockReport struct {
	version

	// Event is "ended".
	Event string `json:"event"`

	// Answered counts the requests that a recorded exchange answered.
	Answered int `json:"answered"`

	// Refused counts the requests that none answered.
	Refused int `json:"refused"`

	// Used are the recorded exchanges that answered, with how often.
	Used []MockUse `json:"used"`

	// Unused are the recorded exchanges that answered nothing.
	Unused []int64 `json:"unused"`

	// Skipped are the recorded exchanges that cannot answer.
	Skipped []MockSkipped `json:"skipped"`
}

// A MockUse is how often a recorded exchange answered.
type MockUse struct {
	// Exchange is its number.
	Exchange int64 `json:"exchange"`

	// Answers counts the requests that it answered.
	Answers int `json:"answers"`
}

// A MockSkipped is a recorded exchange that cannot answer.
type MockSkipped struct {
	// Exchange is its number.
	Exchange int64 `json:"exchange"`

	// Reason says why, such as that WebSockets are not played.
	Reason string `json:"reason"`
}
