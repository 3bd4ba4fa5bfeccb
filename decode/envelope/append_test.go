package envelope

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
)

// appendEvent appends a server-sent event; name may be "".
func appendEvent(dst []byte, name string, data []byte) []byte {
	if name != "" {
		dst = append(append(append(dst, "event: "...), name...), '\n')
	}
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		dst = append(append(append(dst, "data: "...), line...), '\n')
	}
	return append(dst, '\n')
}

// appendTrailer appends the data of a gRPC-Web trailer frame.
func appendTrailer(dst []byte, fields []trailerField) []byte {
	for _, f := range fields {
		dst = append(append(append(append(dst, f.Name...), ": "...), f.Value...), "\r\n"...)
	}
	return dst
}

// appendEnd appends the data of an end-of-stream frame.
func appendEnd(dst []byte, end *End) []byte {
	type detail struct {
		Type  string          `json:"type"`
		Value string          `json:"value"`
		Debug json.RawMessage `json:"debug,omitempty"`
	}
	type failure struct {
		Code    string   `json:"code"`
		Message string   `json:"message,omitempty"`
		Details []detail `json:"details,omitempty"`
	}
	var o struct {
		Error    *failure            `json:"error,omitempty"`
		Metadata map[string][]string `json:"metadata,omitempty"`
	}
	o.Metadata = end.Metadata
	if e := end.Error; e != nil {
		o.Error = &failure{Code: e.Code, Message: e.Message}
		for _, d := range e.Details {
			debug := d.Debug
			if !json.Valid(debug) {
				debug = nil
			}
			o.Error.Details = append(o.Error.Details, detail{d.Type, base64.RawStdEncoding.EncodeToString(d.Value), debug})
		}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(o); err != nil {
		return append(dst, "{}"...) // not reached: strings, and JSON that was checked
	}
	return append(dst, bytes.TrimRight(b.Bytes(), "\n")...)
}
