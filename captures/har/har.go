// Package har reads and writes HTTP Archives (HAR), version 1.2. Package formats uses it.
//
// Export writes a capture; Import reads the entries of any tool. Data for which HAR has no place is in a member
// _unwire of each entry (an extension): times to the nanosecond, trailers, the boundaries and times of chunks,
// the bytes as sent on the wire, and the decoded frames of RPCs as `unwire show --json` prints them. Thus Import
// restores exactly what Export was given.
//
// The messages of a WebSocket are in the entry of its handshake, in the member _webSocketMessages as Chrome
// writes it. Connections without HTTP cannot be represented.
//
//	result, err := har.Export(ctx, w, src, har.Options{Creator: "1.0"})
//	report, err := har.Import(ctx, r, target)
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

// An entry is one exchange in a HAR file. This type and those below are its JSON form. Sizes are in bytes, and
// -1 if unknown.
type entry struct {
	StartedDateTime string `json:"startedDateTime"`
	// Time is the duration in milliseconds, as are all times of a HAR.
	Time            number   `json:"time"`
	Request         request  `json:"request"`
	Response        response `json:"response"`
	Cache           struct{} `json:"cache"`
	Timings         timings  `json:"timings"`
	ServerIPAddress string   `json:"serverIPAddress,omitempty"`

	// ResourceType and Messages are extensions of Chrome. Messages are those of the WebSocket that the request
	// opened.
	ResourceType string    `json:"_resourceType,omitempty"`
	Messages     []message `json:"_webSocketMessages,omitempty"`

	// Unwire contains properties that HAR cannot represent; nil in files of other tools.
	Unwire *extension `json:"_unwire,omitempty"`
}

// A request is the request of a HAR entry.
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

// A response is the response of a HAR entry.
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

	// Error is Chrome's name of the reason why there is no response.
	Error string `json:"_error,omitempty"`
}

// A header is a name and a value: of a header field, a query parameter or a form parameter.
type header struct {
	Name  string `json:"name"`
	Value string `json:"value"`

	// NameB64 and ValueB64 are both set if the name or the value is not valid UTF-8.
	NameB64  []byte `json:"_name_b64,omitempty"`
	ValueB64 []byte `json:"_value_b64,omitempty"`
}

// A cookie is a cookie in a HAR request or response.
type cookie struct {
	Name     string `json:"name"`
	Value    string `json:"value"`
	Path     string `json:"path,omitempty"`
	Domain   string `json:"domain,omitempty"`
	Expires  string `json:"expires,omitempty"`
	HTTPOnly bool   `json:"httpOnly,omitempty"`
	Secure   bool   `json:"secure,omitempty"`
}

// A postData is the request body in a HAR. HAR defines no encoding for it: UnwireEncoding is unwire's
// extension, Encoding that of some other tools.
type postData struct {
	MimeType       string   `json:"mimeType"`
	Text           string   `json:"text"`
	Params         []header `json:"params,omitempty"`
	Encoding       string   `json:"encoding,omitempty"`
	UnwireEncoding string   `json:"_encoding,omitempty"`
	Comment        string   `json:"comment,omitempty"`
}

// A content is the response body in a HAR.
type content struct {
	// Size is the length of the body in bytes, after decompression.
	Size number `json:"size"`

	// Compression is the number of bytes that the content-encoding saved.
	Compression number `json:"compression,omitempty"`

	MimeType string `json:"mimeType"`
	Text     string `json:"text,omitempty"`
	Encoding string `json:"encoding,omitempty"`
	Comment  string `json:"comment,omitempty"`
}

// timings are the phases of an exchange in milliseconds; -1 if unknown.
type timings struct {
	Blocked number `json:"blocked"`
	DNS     number `json:"dns"`
	Connect number `json:"connect"`
	Send    number `json:"send"`
	Wait    number `json:"wait"`
	Receive number `json:"receive"`
	SSL     number `json:"ssl"`
}

// An extension is unwire's additional member _unwire of a HAR entry. It contains the recorded properties that
// HAR cannot represent, so that an import restores the exchange exactly.
type extension struct {
	V  int   `json:"v"`
	ID int64 `json:"id"`

	// Transport is set in the entry of a WebSocket whose handshake is not in the file.
	Transport captures.Transport `json:"transport,omitempty"`

	// URL is the recorded URL if the entry's one differs: browsers expect ws:// for a WebSocket
	// handshake.
	URL string `json:"url,omitempty"`

	// Method, Status and the headers are those of a WebSocket. They are usually empty.
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

	// Rewritten is set if rules changed the request or response before it was forwarded. It says whether the
	// entry contains the received or the forwarded bytes.
	Rewritten *captures.Rewritten `json:"rewritten,omitempty"`

	// WebSocket is the WebSocket that the entry's request opened.
	WebSocket *extension `json:"websocket,omitempty"`

	// Omitted is set if the bodies were too large to be written.
	Omitted bool        `json:"omitted,omitempty"`
	Chunks  []chunkMark `json:"chunks,omitempty"`

	// Up and Down are the request and response bodies as sent on the wire, if the standard members contain them
	// in another form, such as decompressed.
	Up   []byte `json:"up,omitempty"`
	Down []byte `json:"down,omitempty"`

	// Protocol and the following members are the result of decoding. Import ignores them.
	Protocol decode.Protocol `json:"protocol"`
	Service  string          `json:"service,omitempty"`
	RPC      string          `json:"rpc,omitempty"`
	Codec    string          `json:"codec,omitempty"`
	// Code is the status code of the call, and Message the text of the status.
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
	Frames  frames `json:"frames,omitempty"`
}

// frames are decoded frames for other tools. Import ignores them, because unwire can decode the bodies again.
type frames []decode.Line

// UnmarshalJSON ignores its input, because the frames are written for other tools only.
func (*frames) UnmarshalJSON([]byte) error { return nil }

// A chunkMark describes a recorded chunk: the next Len bytes of the body in direction Dir arrived TNS
// nanoseconds after the start of the exchange.
type chunkMark struct {
	Dir string `json:"dir"`
	TNS int64  `json:"t_ns"`
	Len int    `json:"len"`

	// Message and the members below are for a WebSocket: the index of the message in the entry, and the chunk's
	// opcode and flags.
	Message    int   `json:"message,omitempty"`
	Opcode     uint8 `json:"opcode,omitempty"`
	Final      bool  `json:"final,omitempty"`
	Compressed bool  `json:"compressed,omitempty"`
}

// A number is a number in a HAR file, which tools may omit, or write as null or as a string.
type number float64

// UnmarshalJSON decodes a JSON number, a string that contains one, or null, which becomes 0.
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
		return errors.New(transfer.Clip(s) + " is not a number")
	}
	*n = number(f)
	return nil
}

// fieldsOf converts headers to the HAR format.
func fieldsOf(hs captures.Headers) []header {
	out := make([]header, len(hs))
	for i, h := range hs {
		out[i] = header{Name: h.Name, Value: h.Value}
		if !utf8.ValidString(h.Name) || !utf8.ValidString(h.Value) {
			out[i].NameB64, out[i].ValueB64 = []byte(h.Name), []byte(h.Value)
		}
	}
	return out
}

// isKnownOutcome reports whether o is a defined outcome.
func isKnownOutcome(o captures.Outcome) bool {
	switch o {
	case captures.InFlight, captures.Complete, captures.Reset, captures.Canceled, captures.Incomplete, captures.Failed:
		return true
	}
	return false
}

// millis converts a duration to milliseconds.
func millis(d time.Duration) number { return number(float64(d) / 1e6) }
