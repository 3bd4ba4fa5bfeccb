package contract

// Encoded is what `unwire encode` made of a text.
type Encoded struct {
	version

	// Bytes counts the bytes of the result.
	Bytes int64 `json:"bytes"`

	// Data is the result, unless it was written to a file.
	Data []byte `json:"data,omitempty"`

	// Output is the file that was written.
	Output string `json:"output,omitempty"`
}

// InferredFile is a .proto file that `unwire schema infer` made.
type InferredFile struct {
	escapedVersion

	// File is its path below an import root.
	File string `json:"file"`

	// Package is the package that it declares.
	Package string `json:"package"`

	// Messages counts its messages, nested ones too.
	Messages int `json:"messages"`

	// Enums counts its enums, nested ones too.
	Enums int `json:"enums"`

	// Services counts its services.
	Services int `json:"services"`

	// Text is its text, unless it was written to a file.
	Text string `json:"text,omitempty"`

	// Output is the file that was written.
	Output string `json:"output,omitempty"`
}

// MergedEvidence is what `unwire schema merge-evidence` wrote to a file.
type MergedEvidence struct {
	version

	// Output is the file that was written.
	Output string `json:"output"`

	// Inputs counts the files that were read.
	Inputs int `json:"inputs"`

	// Fields counts the fields that the evidence is about.
	Fields int `json:"fields"`
}
