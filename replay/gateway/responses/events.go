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
		// envelope has the type and the sequence number of the event.
		envelope

		// Response is the response so far.
		Response *response `json:"response"`
	}

	// An itemEvent reports that an output item was added or is done.
	itemEvent struct {
		// envelope has the type and the sequence number of the event.
		envelope

		// OutputIndex is the index of the item in the response's output.
		OutputIndex int `json:"output_index"`

		// Item is the output item, such as a messageItem.
		Item any `json:"item"`
	}

	// A partEvent reports that a part of a message's content was added or is done.
	partEvent struct {
		// envelope has the type and the sequence number of the event.
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
		// envelope has the type and the sequence number of the event.
		envelope

		// ItemID is the id of the message item to which the text belongs.
		ItemID string `json:"item_id"`

		// OutputIndex is the index of the item in the response's output.
		OutputIndex int `json:"output_index"`

		// ContentIndex is always 0: a message has one part.
		ContentIndex int `json:"content_index"`

		// Delta is the text to be appended.
		Delta string `json:"delta"`

		// Logprobs is always empty; the API's clients expect the member.
		Logprobs []string `json:"logprobs"`
	}

	// A textDoneEvent has the complete text of a message.
	textDoneEvent struct {
		// envelope has the type and the sequence number of the event.
		envelope

		// ItemID is the id of the message item to which the text belongs.
		ItemID string `json:"item_id"`

		// OutputIndex is the index of the item in the response's output.
		OutputIndex int `json:"output_index"`

		// ContentIndex is always 0: a message has one part.
		ContentIndex int `json:"content_index"`

		// Text is the complete text.
		Text string `json:"text"`

		// Logprobs is always empty; the API's clients expect the member.
		Logprobs []string `json:"logprobs"`
	}

	// A summaryPartEvent reports that a part of a reasoning summary was added or is done.
	summaryPartEvent struct {
		// envelope has the type and the sequence number of the event.
		envelope

		// ItemID is the id of the reasoning item to which the part belongs.
		ItemID string `json:"item_id"`

		// OutputIndex is the index of the item in the response's output.
		OutputIndex int `json:"output_index"`

		// SummaryIndex is always 0: a summary has one part.
		SummaryIndex int `json:"summary_index"`

		// Part is the part of the summary; its text is empty when it is added.
		Part summaryPart `json:"part"`
	}

	// A summaryDeltaEvent is a piece of a reasoning summary.
	summaryDeltaEvent struct {
		// envelope has the type and the sequence number of the event.
		envelope

		// ItemID is the id of the reasoning item to which the text belongs.
		ItemID string `json:"item_id"`

		// OutputIndex is the index of the item in the response's output.
		OutputIndex int `json:"output_index"`

		// SummaryIndex is always 0: a summary has one part.
		SummaryIndex int `json:"summary_index"`

		// Delta is the text to be appended to the summary.
		Delta string `json:"delta"`
	}

	// A summaryDoneEvent has the complete text of a reasoning summary.
	summaryDoneEvent struct {
		// envelope has the type and the sequence number of the event.
		envelope

		// ItemID is the id of the reasoning item to which the text belongs.
		ItemID string `json:"item_id"`

		// OutputIndex is the index of the item in the response's output.
		OutputIndex int `json:"output_index"`

		// SummaryIndex is always 0: a summary has one part.
		SummaryIndex int `json:"summary_index"`

		// Text is the complete text of the summary.
		Text string `json:"text"`
	}

	// A callDeltaEvent is a piece of a tool call's arguments or input.
	callDeltaEvent struct {
		// envelope has the type and the sequence number of the event.
		envelope

		// ItemID is the id of the item with the tool call.
		ItemID string `json:"item_id"`

		// OutputIndex is the index of the item in the response's output.
		OutputIndex int `json:"output_index"`

		// Delta is the text to be appended to the arguments or the input.
		Delta string `json:"delta"`
	}

	// An argumentsDoneEvent has the complete arguments of a function call.
	argumentsDoneEvent struct {
		// envelope has the type and the sequence number of the event.
		envelope

		// ItemID is the id of the item with the function call.
		ItemID string `json:"item_id"`

		// OutputIndex is the index of the item in the response's output.
		OutputIndex int `json:"output_index"`

		// Arguments are the complete arguments as JSON text.
		Arguments string `json:"arguments"`
	}

	// An inputDoneEvent has the complete input of a custom tool's call.
	inputDoneEvent struct {
		// envelope has the type and the sequence number of the event.
		envelope

		// ItemID is the id of the item with the tool call.
		ItemID string `json:"item_id"`

		// OutputIndex is the index of the item in the response's output.
		OutputIndex int `json:"output_index"`

		// Input is the complete input, a text.
		Input string `json:"input"`
	}
	// An errorEvent has the members of the API's schema, and in addition the member
	// error, by which the official clients know that a stream has failed.
	errorEvent struct {
		// envelope has the type and the sequence number of the event.
		envelope

		// Code is the API's name of the error; null for none.
		Code *string `json:"code"`

		// Message is the text of the error for humans.
		Message string `json:"message"`

		// Param is the name of the request's parameter that caused the error; null for none.
		Param *string `json:"param"`

		// Error is the error in the form in which the official clients recognise it.
		Error any `json:"error"`
	}
)
