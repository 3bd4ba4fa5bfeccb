package responses

// An envelope has the members that all events of a response stream share.
type envelope struct {
	// Type is the type of the event, such as "response.created".
	Type string `json:"type"`

	// SequenceNumber is the number of the event in the stream, from 0.
	SequenceNumber int64 `json:"sequence_number"`
}

// The server-sent events of a response stream.
type (
	// A responseEvent contains the whole response, such as response.created.
	responseEvent struct {
		envelope

		// Response is the response so far.
		Response *response `json:"response"`
	}

	// An itemEvent reports that an output item was added or is done.
	itemEvent struct {
		envelope

		// OutputIndex is the index of the item in the response's output.
		OutputIndex int `json:"output_index"`

		// Item is the output item, such as a messageItem.
		Item any `json:"item"`
	}

	// A partEvent reports that a part of a message's content was added or is done.
	partEvent struct {
		envelope

		// ItemID is the id of the message item.
		ItemID string `json:"item_id"`

		// OutputIndex is the index of the item in the response's output.
		OutputIndex int `json:"output_index"`

		// ContentIndex is always 0: a message has one part.
		ContentIndex int `json:"content_index"`

		// Part is the part; empty when it is added.
		Part messagePart `json:"part"`
	}

	// A textDeltaEvent is a piece of a message's text.
	textDeltaEvent struct {
		envelope
		ItemID      string `json:"item_id"`
		OutputIndex int    `json:"output_index"`

		// ContentIndex is always 0: a message has one part.
		ContentIndex int `json:"content_index"`

		// Delta is the text to be appended.
		Delta string `json:"delta"`

		// Logprobs is always empty; the API's clients expect the member.
		Logprobs []string `json:"logprobs"`
	}

	// A textDoneEvent has the complete text of a message.
	textDoneEvent struct {
		envelope
		ItemID      string `json:"item_id"`
		OutputIndex int    `json:"output_index"`

		// ContentIndex is always 0: a message has one part.
		ContentIndex int    `json:"content_index"`
		Text         string `json:"text"`

		// Logprobs is always empty; the API's clients expect the member.
		Logprobs []string `json:"logprobs"`
	}

	// A summaryPartEvent reports that a part of a reasoning summary was added or is done.
	summaryPartEvent struct {
		envelope
		ItemID      string `json:"item_id"`
		OutputIndex int    `json:"output_index"`

		// SummaryIndex is always 0: a summary has one part.
		SummaryIndex int         `json:"summary_index"`
		Part         summaryPart `json:"part"`
	}

	// A summaryDeltaEvent is a piece of a reasoning summary.
	summaryDeltaEvent struct {
		envelope
		ItemID      string `json:"item_id"`
		OutputIndex int    `json:"output_index"`

		// SummaryIndex is always 0: a summary has one part.
		SummaryIndex int    `json:"summary_index"`
		Delta        string `json:"delta"`
	}

	// A summaryDoneEvent has the complete text of a reasoning summary.
	summaryDoneEvent struct {
		envelope
		ItemID      string `json:"item_id"`
		OutputIndex int    `json:"output_index"`

		// SummaryIndex is always 0: a summary has one part.
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

		// Error is the error in the form in which the official clients recognise it.
		Error any `json:"error"`
	}
)
