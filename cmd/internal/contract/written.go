package contract

// Encoded is the result of `unwire encode`.
type Encoded struct {
	// version adds the member v, the version number of the JSON format.
	version

	// Bytes is the size of the encoded message.
	Bytes int64 `json:"bytes"`

	// Data is the encoded message; missing if it was written to a file.
	Data []byte `json:"data,omitempty"`

	// Output is the path of the file that was written; missing if Data has the result.
	Output string `json:"output,omitempty"`
}

// InferredFile is one .proto file that `unwire schema infer` has generated.
type InferredFile struct {
	// escapedVersion adds the member v, the version number of the JSON format, and makes the encoder escape <, > and
	// & in strings.
	escapedVersion

	// File is the path of the .proto file relative to the import root.
	File string `json:"file"`

	// Package is the protobuf package that the file declares.
	Package string `json:"package"`

	// Messages is the number of messages in the file, including nested ones.
	Messages int `json:"messages"`

	// Enums is the number of enums in the file, including nested ones.
	Enums int `json:"enums"`

	// Services is the number of services in the file.
	Services int `json:"services"`

	// Text is the content of the .proto file; missing if it was written to a file.
	Text string `json:"text,omitempty"`

	// Output is the path of the written .proto file; missing if Text has its content.
	Output string `json:"output,omitempty"`
}

// MergedEvidence is the output of `unwire schema merge-evidence`, which has written a file.
type MergedEvidence struct {
	// version adds the member v, the version number of the JSON format.
	version

	// Output is the path of the evidence file that was written.
	Output string `json:"output"`

	// Inputs is the number of evidence files that were merged.
	Inputs int `json:"inputs"`

	// Fields is the number of fields that the evidence is about.
	Fields int `json:"fields"`
}
