package responses

// An envelope has the members that all events share.
type envelope struct {
	Type           string `json:"type"`
	SequenceNumber int64  `json:"sequence_number"`
}

// The server-sent events of a response stream.
type (
	responseEvent struct {
		envelope
		Response *response `json:"response"`
	}
	itemEvent struct {
		envelope
		OutputIndex int `json:"output_index"`
		Item        any `json:"item"`
	}
	partEvent struct {
		envelope
		ItemID       string      `json:"item_id"`
		OutputIndex  int         `json:"output_index"`
		ContentIndex int         `json:"content_index"`
		Part         messagePart `json:"part"`
	}
	textDeltaEvent struct {
		envelope
		ItemID       string   `json:"item_id"`
		OutputIndex  int      `json:"output_index"`
		ContentIndex int      `json:"content_index"`
		Delta        string   `json:"delta"`
		Logprobs     []string `json:"logprobs"`
	}
	textDoneEvent struct {
		envelope
		ItemID       string   `json:"item_id"`
		OutputIndex  int      `json:"output_index"`
		ContentIndex int      `json:"content_index"`
		Text         string   `json:"text"`
		Logprobs     []string `json:"logprobs"`
	}
	summaryPartEvent struct {
		envelope
		ItemID       string      `json:"item_id"`
		OutputIndex  int         `json:"output_index"`
		SummaryIndex int         `json:"summary_index"`
		Part         summaryPart `json:"part"`
	}
	summaryDeltaEvent struct {
		envelope
		ItemID       string `json:"item_id"`
		OutputIndex  int    `json:"output_index"`
		SummaryIndex int    `json:"summary_index"`
		Delta        string `json:"delta"`
	}
	summaryDoneEvent struct {
		envelope
		ItemID       string `json:"item_id"`
		OutputIndex  int    `json:"output_index"`
		SummaryIndex int    `json:"summary_index"`
		Text         string `json:"text"`
	}
	callDeltaEvent struct {
		envelope
		ItemID      string `json:"item_id"`
		OutputIndex int    `json:"output_index"`
		Delta       string `json:"delta"`
	}
	argumentsDoneEvent struct {
		envelope
		ItemID      string `json:"item_id"`
		OutputIndex int    `json:"output_index"`
		Arguments   string `json:"arguments"`
	}
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
