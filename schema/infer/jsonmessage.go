package infer

// A JSONMessage is a message type that was made of a group of messages in JSON.
type JSONMessage struct {
	Message string `json:"message"`

	// Place is the URL of the messages and their direction.
	Place    string `json:"place"`
	Messages int64  `json:"messages"`

	// Member and Value are the discriminator, such as type, and its text.
	Member string `json:"discriminator,omitempty"`
	Value  string `json:"value,omitempty"`

	Fields []JSONField `json:"fields"`
}

// A JSONField is what members of JSON objects became.
type JSONField struct {
	// Path is the names that lead to the members, joined by dots.
	Path string `json:"path"`

	// Name and Number are those in the definitions; JSON has no numbers, so they are made up.
	Name   string `json:"name"`
	Number int    `json:"number"`

	Type     string `json:"type"`
	Repeated bool   `json:"repeated,omitempty"`

	// Seen counts the objects with the member, Of all objects there.
	Seen int64 `json:"seen"`
	Of   int64 `json:"of"`
}
