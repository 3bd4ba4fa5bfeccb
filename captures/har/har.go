// Package har reads and writes HTTP Archives, version 1.2.
//
// What a HAR has no place for stands in a member _unwire of each entry, so that
// Import gives back what Export was given: times to the nanosecond, trailers,
// the chunks' boundaries and times, the bytes as they were on the wire, and the
// frames of an RPC as `unwire show --json` prints them.
//
// The types of the format are in this file; write makes entries of exchanges, and
// read converts entries of any tool to exchanges; extension is the member _unwire. The
// messages of a WebSocket are in the entry of its handshake, in the member
// _webSocketMessages as Chrome writes it. Connections without HTTP have no place in a HAR.
// Package formats alone calls this one.
//
// Source: captures/README.md#har, http://www.softwareishard.com/blog/har-12-spec/
package har

import (
	"encoding/json"
	"errors"
	"strconv"
	"time"
	"unicode/utf8"

	"unwire/captures"
	"unwire/captures/transfer"
	"unwire/decode"
)

// An entry is one exchange in a HAR.
type entry struct {
	StartedDateTime string   `json:"startedDateTime"`
	Time            number   `json:"time"` // milliseconds, as all times of a HAR
	Request         request  `json:"request"`
	Response        response `json:"response"`
	Cache           struct{} `json:"cache"`
	Timings         timings  `json:"timings"`
	ServerIPAddress string   `json:"serverIPAddress,omitempty"`

	// ResourceType and Messages are Chrome's; the latter are those of the WebSocket that
	// the entry's request opened.
	ResourceType string    `json:"_resourceType,omitempty"`
	Messages     []message `json:"_webSocketMessages,omitempty"`

	Unwire *extension `json:"_unwire,omitempty"`
}

type request struct {
	Method      string    `json:"method"`
	URL         string    `json:"url"`
	HTTPVersion string    `json:"httpVersion"`
	Cookies     []cookie  `json:"cookies"`
	Headers     []header  `json:"headers"`
	QueryString []header  `json:"queryString"`
	PostData    *postData `json:"postData,omitempty"`
	HeadersSize number    `json:"headersSize"`
	BodySize    number    `json:"bodySize"`
}

type response struct {
	Status      number   `json:"status"`
	StatusText  string   `json:"statusText"`
	HTTPVersion string   `json:"httpVersion"`
	Cookies     []cookie `json:"cookies"`
	Headers     []header `json:"headers"`
	Content     content  `json:"content"`
	RedirectURL string   `json:"redirectURL"`
	HeadersSize number   `json:"headersSize"`
	BodySize    number   `json:"bodySize"`

	// Error is why there is no response, in Chrome's words.
	Error string `json:"_error,omitempty"`
}

// A header is a name and its value: of a header field or of a query parameter.
type header struct {
	Name  string `json:"name"`
	Value string `json:"value"`

	// Name8 and Value8 are both set if one of the two is not UTF-8.
	Name8  []byte `json:"_name_b64,omitempty"`
	Value8 []byte `json:"_value_b64,omitempty"`
}

type cookie struct {
	Name     string `json:"name"`
	Value    string `json:"value"`
	Path     string `json:"path,omitempty"`
	Domain   string `json:"domain,omitempty"`
	Expires  string `json:"expires,omitempty"`
	HTTPOnly bool   `json:"httpOnly,omitempty"`
	Secure   bool   `json:"secure,omitempty"`
}

// A postData is a request's body. The format has no encoding here; _encoding is
// ours, encoding is what other tools write.
type postData struct {
	MimeType  string   `json:"mimeType"`
	Text      string   `json:"text"`
	Params    []header `json:"params,omitempty"`
	Encoding  string   `json:"encoding,omitempty"`
	EncodingX string   `json:"_encoding,omitempty"`
	Comment   string   `json:"comment,omitempty"`
}

type content struct {
	// Size is the length of the body in bytes, without its content-encoding.
	Size number `json:"size"`

	// Compression is how many bytes the content-encoding saved.
	Compression number `json:"compression,omitempty"`

	MimeType string `json:"mimeType"`
	Text     string `json:"text,omitempty"`
	Encoding string `json:"encoding,omitempty"`
	Comment  string `json:"comment,omitempty"`
}

// timings are milliseconds; -1 is not known.
type timings struct {
	Blocked number `json:"blocked"`
	DNS     number `json:"dns"`
	Connect number `json:"connect"`
	Send    number `json:"send"`
	Wait    number `json:"wait"`
	Receive number `json:"receive"`
	SSL     number `json:"ssl"`
}

// An extension is what a HAR has no place for.
type extension struct {
	V  int   `json:"v"`
	ID int64 `json:"id"`

	// Transport is that of an entry for a WebSocket whose handshake is not in the file.
	Transport captures.Transport `json:"transport,omitempty"`

	// URL is set if the entry has another. That of a handshake begins with ws there, as
	// browsers have it.
	URL string `json:"url,omitempty"`

	// Method, Status and the headers are those of a WebSocket, which has mostly none.
	Method          string   `json:"method,omitempty"`
	Status          int      `json:"status,omitempty"`
	RequestHeaders  []header `json:"request_headers,omitempty"`
	ResponseHeaders []header `json:"response_headers,omitempty"`

	HTTP       string           `json:"http"`
	Started    time.Time        `json:"started"`
	DurationNS int64            `json:"duration_ns"`
	Outcome    captures.Outcome `json:"outcome"`
	Error      string           `json:"error,omitempty"`
	Client     string           `json:"client"`
	Server     string           `json:"server"`
	TLS        captures.TLS     `json:"tls"`
	Process    captures.Process `json:"process,omitzero"`
	Source     string           `json:"source"`

	RequestTrailers  []header `json:"request_trailers,omitempty"`
	ResponseTrailers []header `json:"response_trailers,omitempty"`

	Relations []transfer.Relation `json:"relations,omitempty"`

	// WebSocket is what the entry's request opened.
	WebSocket *extension `json:"websocket,omitempty"`

	// Omitted is set if the bodies were too large for a HAR.
	Omitted bool   `json:"omitted,omitempty"`
	Chunks  []mark `json:"chunks,omitempty"`

	// Up and Down are the bodies as they were on the wire, if the entry has them in
	// another form.
	Up   []byte `json:"up,omitempty"`
	Down []byte `json:"down,omitempty"`

	Protocol decode.Protocol `json:"protocol"`
	Service  string          `json:"service,omitempty"`
	RPC      string          `json:"rpc,omitempty"`
	Codec    string          `json:"codec,omitempty"`
	Code     string          `json:"code,omitempty"`
	Message  string          `json:"message,omitempty"`
	Frames   frames          `json:"frames,omitempty"`
}

// frames are derived: they are written, and passed over when they are read.
type frames []decode.Line

// UnmarshalJSON takes anything.
func (*frames) UnmarshalJSON([]byte) error { return nil }

// A mark is where a chunk ends: the next n bytes of a direction passed at t.
type mark struct {
	Dir string `json:"dir"`
	TNS int64  `json:"t_ns"`
	Len int    `json:"len"`

	// The rest is of a WebSocket: which of the entry's messages the bytes are of, and the
	// chunk's opcode.
	Message    int   `json:"message,omitempty"`
	Opcode     uint8 `json:"opcode,omitempty"`
	Final      bool  `json:"final,omitempty"`
	Compressed bool  `json:"compressed,omitempty"`
}

// A number is one that other tools leave out, or write as null or in quotes.
type number float64

// UnmarshalJSON reads null as 0.
func (n *number) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	s := string(b)
	if len(b) > 0 && b[0] == '"' {
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f != f || f > 1e15 || f < -1e15 {
		return errors.New(transfer.Clip(s) + " is no number")
	}
	*n = number(f)
	return nil
}

func fieldsOf(hs captures.Headers) []header {
	out := make([]header, len(hs))
	for i, h := range hs {
		out[i] = header{Name: h.Name, Value: h.Value}
		if !utf8.ValidString(h.Name) || !utf8.ValidString(h.Value) {
			out[i].Name8, out[i].Value8 = []byte(h.Name), []byte(h.Value)
		}
	}
	return out
}

// isKnownOutcome reports whether o is one of the outcomes.
func isKnownOutcome(o captures.Outcome) bool {
	switch o {
	case captures.InFlight, captures.Complete, captures.Reset, captures.Canceled, captures.Incomplete, captures.Failed:
		return true
	}
	return false
}

func millis(d time.Duration) number { return number(float64(d) / 1e6) }
