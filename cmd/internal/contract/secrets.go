package contract

import "unwire/decode/secret"

// Finding is a value that may be a secret, or data that could not be searched for secrets. It never
// contains the value.
type Finding struct {
	// version adds the member v, the version number of the JSON format.
	version

	// File is the path of the capture.
	File string `json:"file"`

	// Exchange is the number of the exchange.
	Exchange int64 `json:"exchange"`

	// Rule is the rule that found the value; not-searched for data that could not be searched.
	Rule string `json:"rule"`

	// Place is the part of the exchange that has the value, such as url, request header or up.
	Place string `json:"place"`

	// Header is the name of the header.
	Header string `json:"header,omitempty"`

	// Name is the name of the query parameter or JSON member.
	Name string `json:"name,omitempty"`

	// Frame is the address of the frame; missing if the value is not in a frame.
	Frame string `json:"frame,omitempty"`

	// Path is the path of the field.
	Path string `json:"path,omitempty"`

	// Encoding is how the value is encoded where it was found.
	Encoding string `json:"encoding,omitempty"`

	// Off is the offset of the value in bytes.
	Off int `json:"off"`

	// Len is the length of the value in bytes.
	Len int `json:"len"`

	// Count is the number of occurrences.
	Count int `json:"count"`

	// Removable is true if 'unwire redact' can remove the secret.
	Removable bool `json:"removable"`
}

// NewFinding builds the JSON object for a secret found in a file. frame is the address of its frame; ""
// if the secret is not in a frame.
func NewFinding(file, frame string, f *secret.Finding) *Finding {
	return &Finding{
		File: file, Exchange: f.Exchange, Rule: string(f.Rule), Place: f.Place, Header: f.Header, Name: f.Name,
		Frame: frame, Path: f.Path.String(), Encoding: f.Encoding, Off: f.Off, Len: f.Len, Count: f.Count,
		Removable: !f.Stays,
	}
}

// Redacted is the result of `unwire redact`.
type Redacted struct {
	// version adds the member v, the version number of the JSON format.
	version

	// File is the path of the redacted copy.
	File string `json:"file"`

	// Exchanges is the number of exchanges in the copy.
	Exchanges int `json:"exchanges"`

	// Fields is the number of field values that were replaced because their fields are known to contain
	// secrets.
	Fields int `json:"fields"`

	// Left is the number of findings in the copy.
	Left int `json:"left"`

	// OmittedExchanges is the number of exchanges that were left out because they cannot be searched for
	// secrets.
	OmittedExchanges int `json:"omitted_exchanges"`

	// OmittedBytes is the number of bytes that were left out because they cannot be searched for secrets.
	OmittedBytes int64 `json:"omitted_bytes"`
}
