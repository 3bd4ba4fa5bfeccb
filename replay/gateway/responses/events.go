package responses

// An envelope has the members that all events of a response stream share.
type envelope struct {
	Type           string `json:"type"`
	SequenceNumber int64  `json:"sequence_number"`
}

// The server-sent events of a response stream.
type (
	// A responseEvent contains the whole response, such as response.created.
	responseEvent struct {
		envelope
		Response *response `json:"response"`
	}

	// An itemEvent reports that an output item was added or is done.
	itemEvent struct {
		envelope
		OutputIndex int `json:"output_index"`
		Item        any `json:"item"`
	}

	// A partEvent reports that a part of a message's content was added or is done.
	partEvent struct {
		envelope
		ItemID       string      `json:"item_id"`
		OutputIndex  int         `json:"output_index"`
		ContentIndex int         `json:"content_index"`
		Part         messagePart `json:"part"`
	}

	// A textDeltaEvent is a piece of a message's text.
	textDeltaEvent struct {
		envelope
		ItemID       string   `json:"item_id"`
		OutputIndex  int      `json:"output_index"`
		ContentIndex int      `json:"content_index"`
		Delta        string   `json:"delta"`
		Logprobs     []string `json:"logprobs"`
	}

	// A textDoneEvent has the complete text of a message.
	textDoneEvent struct {
		envelope
		ItemID       string   `json:"item_id"`
		OutputIndex  int      `json:"output_index"`
		ContentIndex int      `json:"content_index"`
		Text         string   `json:"text"`
		Logprobs     []string `json:"logprobs"`
	}

	// A summaryPartEvent reports that a part of a reasoning summary was added or is done.
	summaryPartEvent struct {
		envelope
		ItemID       string      `json:"item_id"`
		OutputIndex  int         `json:"output_index"`
		SummaryIndex int         `json:"summary_index"`
		Part         summaryPart `json:"part"`
	}

	// A summaryDeltaEvent is a piece of a reasoning summary.
	summaryDeltaEvent struct {
		envelope
		ItemID       string `json:"item_id"`
		OutputIndex  int    `json:"output_index"`
		SummaryIndex int    `json:"summary_index"`
		Delta        string `json:"delta"`
	}

	// A summaryDoneEvent has the complete text of a reasoning summary.
	summaryDoneEvent struct {
		envelope
		ItemID       string `json:"item_id"`
		OutputIndex  int    `json:"output_index"`
		SummaryIndex int    `json:"summary_index"`
		Text         string `json:"text"`
	}

	// A callDeltaEvent is a piece of a tool call's arguments or input.
	callDeltaEvent struct {
		envelope
		ItemID      string `json:"item_id"`
		OutputIndex int    `json:"output_index"`
		Delta       string `json:"delta"`
	}

	// An argumentsDoneEvent has the complete arguments of a function call.
	argumentsDoneEvent struct {
		envelope
		ItemID      string `json:"item_id"`
		OutputIndex int    `json:"output_index"`
		Arguments   string `json:"arguments"`
	}

	// An inputDoneEvent has the complete input of a custom tool's call.
	inputDoneEvent struct {
		envelope
		ItemID      string `json:"item_id"`
		OutputIndex int    `json:"output_index"`
		Input       string `json:"input"`
	}
	// An errorEvent has the members of the API's schema, and in addition the member
	// error, by which the official clients know that a stream has failed.
	errorEvent struct {
		envelope
		Code    *string `json:"code"`
		Message string  `json:"message"`
		Param   *string `json:"param"`
		Error   any     `json:"error"`
	}
)
