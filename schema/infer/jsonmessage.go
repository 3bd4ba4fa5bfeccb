package infer

// A JSONMessage is a message type that was inferred from a group of JSON messages.
type JSONMessage struct {
	// Message is the full name of the message type inferred from JSON.
	Message string `json:"message"`

	// Place is the URL template and direction of the messages.
	Place string `json:"place"`
	// Messages is the number of messages.
	Messages int64 `json:"messages"`

	// Member is the discriminator that distinguishes the type, such as "type"; "" if there is none.
	Member string `json:"discriminator,omitempty"`
	// Value is the value of the discriminator in these messages.
	Value string `json:"value,omitempty"`

	// Fields are the fields of the type, including nested ones.
	Fields []JSONField `json:"fields"`
}

// A JSONField is a protobuf field that was inferred from a member of JSON objects.
type JSONField struct {
	// Path is the path of JSON member names to the member, joined by dots.
	Path string `json:"path"`

	// Name is the name of the field in the definitions.
	Name string `json:"name"`
	// Number is the field number in the definitions. JSON has no field numbers, so it is arbitrary.
	Number int `json:"number"`

	// Type is the declared type of the field.
	Type string `json:"type"`
	// Repeated is set if the values are arrays.
	Repeated bool `json:"repeated,omitempty"`

	// Seen is the number of objects that contain the member.
	Seen int64 `json:"seen"`
	// Of is the number of all objects at that path, with or without the member.
	Of int64 `json:"of"`
}
