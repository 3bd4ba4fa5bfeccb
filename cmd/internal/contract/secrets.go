package contract

import "unwire/decode/secret"

// Finding is something that looks like a secret, or that could not be searched for
// one. It never has the value.
type Finding struct {
	version
	File     string `json:"file"`
	Exchange int64  `json:"exchange"`
	Rule     string `json:"rule"`
	Place    string `json:"place"`
	Header   string `json:"header,omitempty"`
	Name     string `json:"name,omitempty"`
	Frame    string `json:"frame,omitempty"` // the frame's address
	Path     string `json:"path,omitempty"`
	Encoding string `json:"encoding,omitempty"`
	Off      int    `json:"off"`
	Len      int    `json:"len"`
	Count    int    `json:"count"`

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
	version
	File      string `json:"file"` // the copy
	Exchanges int    `json:"exchanges"`
	Fields    int    `json:"fields"` // values of known fields that were replaced
	Left      int    `json:"left"`   // values that an audit of the copy finds

	// OmittedExchanges and OmittedBytes count the exchanges and bytes that were left out because they
	// cannot be searched for secrets.
	OmittedExchanges int   `json:"omitted_exchanges"`
	OmittedBytes     int64 `json:"omitted_bytes"`
}
