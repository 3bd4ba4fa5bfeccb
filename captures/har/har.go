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
	// StartedDateTime is the time at which the request began, as in RFC 3339.
	StartedDateTime string `json:"startedDateTime"`
	// Time is the duration of the exchange in milliseconds.
	Time number `json:"time"`
	// Request is the HTTP request of the entry.
	Request request `json:"request"`
	// Response is the HTTP response of the entry; its Status is 0 if there was no response.
	Response response `json:"response"`
	// Cache is always written as an empty object, because HAR requires it and unwire knows nothing about the
	// browser's cache.
	Cache struct{} `json:"cache"`
	// Timings are the durations of the phases of the exchange, in milliseconds.
	Timings timings `json:"timings"`
	// ServerIPAddress is the IP address of the server; "" if unknown.
	ServerIPAddress string `json:"serverIPAddress,omitempty"`

	// ResourceType is Chrome's extension for the kind of resource, such as "websocket"; "" if not given.
	ResourceType string `json:"_resourceType,omitempty"`
	// Messages are the messages of the WebSocket that the request opened, an extension of Chrome; nil if it
	// opened none.
	Messages []message `json:"_webSocketMessages,omitempty"`

	// Unwire contains properties that HAR cannot represent; nil in files of other tools.
	Unwire *extension `json:"_unwire,omitempty"`
}

// A request is the request of a HAR entry.
type request struct {
	// Method is the HTTP method.
	Method string `json:"method"`
	// URL is the absolute URL of the request.
	URL string `json:"url"`
	// HTTPVersion is the HTTP version, such as "HTTP/1.1".
	HTTPVersion string `json:"httpVersion"`
	// Cookies are the cookies of the request, which Headers contain too.
	Cookies []cookie `json:"cookies"`
	// Headers are the header fields of the request, in wire order.
	Headers []header `json:"headers"`
	// QueryString lists the query parameters of the URL.
	QueryString []header `json:"queryString"`
	// PostData is the request body; nil if there is none.
	PostData *postData `json:"postData,omitempty"`
	// HeadersSize is the size of the request's header section in bytes; -1 if unknown.
	HeadersSize number `json:"headersSize"`
	// BodySize is the size of the request body as sent, in bytes; -1 if unknown.
	BodySize number `json:"bodySize"`
}

// A response is the response of a HAR entry.
type response struct {
	// Status is the HTTP status code; 0 if there was no response.
	Status number `json:"status"`
	// StatusText is the reason phrase of the status, such as "Not Found".
	StatusText string `json:"statusText"`
	// HTTPVersion is the HTTP version, such as "HTTP/1.1".
	HTTPVersion string `json:"httpVersion"`
	// Cookies are the cookies that the response sets, which Headers contain too.
	Cookies []cookie `json:"cookies"`
	// Headers are the header fields of the response, in wire order.
	Headers []header `json:"headers"`
	// Content is the response body with its media type.
	Content content `json:"content"`
	// RedirectURL is the value of the Location header field; "" if there is none.
	RedirectURL string `json:"redirectURL"`
	// HeadersSize is the size of the response's header section in bytes; -1 if unknown.
	HeadersSize number `json:"headersSize"`
	// BodySize is the size of the response body as sent, in bytes; -1 if unknown.
	BodySize number `json:"bodySize"`

	// Error is Chrome's name of the reason why there is no response.
	Error string `json:"_error,omitempty"`
}

// A header is a name and a value: of a header field, a query parameter or a form parameter.
type header struct {
	// Name is the name of the header field, query parameter or form parameter.
	Name string `json:"name"`
	// Value is the value of the header field, query parameter or form parameter.
	Value string `json:"value"`

	// NameB64 is the exact name, in base64 in JSON, if the name or value is not valid UTF-8; nil otherwise.
	NameB64 []byte `json:"_name_b64,omitempty"`
	// ValueB64 is the exact value, in base64 in JSON, if the name or value is not valid UTF-8; nil otherwise.
	ValueB64 []byte `json:"_value_b64,omitempty"`
}

// A cookie is a cookie in a HAR request or response.
type cookie struct {
	// Name is the name of the cookie.
	Name string `json:"name"`
	// Value is the value of the cookie, exactly as in the header field.
	Value string `json:"value"`
	// Path is the cookie's Path attribute; "" if there is none.
	Path string `json:"path,omitempty"`
	// Domain is the cookie's Domain attribute; "" if there is none.
	Domain string `json:"domain,omitempty"`
	// Expires is the time at which the cookie expires, as in RFC 3339; "" for a session cookie.
	Expires string `json:"expires,omitempty"`
	// HTTPOnly is set if the cookie has the attribute HttpOnly.
	HTTPOnly bool `json:"httpOnly,omitempty"`
	// Secure is set if the cookie has the attribute Secure.
	Secure bool `json:"secure,omitempty"`
}

// A postData is the request body in a HAR. HAR defines no encoding for it: UnwireEncoding is unwire's
// extension, Encoding that of some other tools.
type postData struct {
	// MimeType is the Content-Type of the request.
	MimeType string `json:"mimeType"`
	// Text is the request body, as plain text or in the encoding that Encoding or UnwireEncoding names.
	Text string `json:"text"`
	// Params are the parameters of a form; some tools write them instead of Text.
	Params []header `json:"params,omitempty"`
	// Encoding is how some other tools mark the encoding of Text: "base64", or "" for plain text.
	Encoding string `json:"encoding,omitempty"`
	// UnwireEncoding is unwire's own mark for the encoding of Text, and has priority over Encoding: "base64",
	// or "" for plain text.
	UnwireEncoding string `json:"_encoding,omitempty"`
	// Comment explains why the body is missing from the file; usually "".
	Comment string `json:"comment,omitempty"`
}

// A content is the response body in a HAR.
type content struct {
	// Size is the length of the body in bytes, after decompression.
	Size number `json:"size"`

	// Compression is the number of bytes that the content-encoding saved.
	Compression number `json:"compression,omitempty"`

	// MimeType is the Content-Type of the response.
	MimeType string `json:"mimeType"`
	// Text is the decompressed response body, as plain text or in the encoding that Encoding names.
	Text string `json:"text,omitempty"`
	// Encoding is the encoding of Text: "base64", or "" for plain text.
	Encoding string `json:"encoding,omitempty"`
	// Comment explains why the body is missing from the file; usually "".
	Comment string `json:"comment,omitempty"`
}

// timings are the phases of an exchange in milliseconds; -1 if unknown.
type timings struct {
	// Blocked is the time that the request waited for a connection, in milliseconds; -1 if unknown.
	Blocked number `json:"blocked"`
	// DNS is the duration of the name lookup, in milliseconds; -1 if unknown.
	DNS number `json:"dns"`
	// Connect is the time to establish the connection, in milliseconds; -1 if unknown.
	Connect number `json:"connect"`
	// Send is the time to send the request, in milliseconds.
	Send number `json:"send"`
	// Wait is the time from the end of the request to the first byte of the response, in milliseconds.
	Wait number `json:"wait"`
	// Receive is the time to receive the response, in milliseconds.
	Receive number `json:"receive"`
	// SSL is the duration of the TLS handshake, in milliseconds; -1 if unknown.
	SSL number `json:"ssl"`
}

// An extension is unwire's additional member _unwire of a HAR entry. It contains the recorded properties that
// HAR cannot represent, so that an import restores the exchange exactly.
type extension struct {
	// V is the version of unwire's extension of HAR, always 1.
	V int `json:"v"`
	// ID is the number of the exchange in the exported capture, from 1; relations of other entries refer to
	// it.
	ID int64 `json:"id"`

	// Transport is "websocket" in the entry of a WebSocket whose handshake is not in the file; "" in other
	// entries.
	Transport captures.Transport `json:"transport,omitempty"`

	// URL is the recorded URL if the entry's one differs: browsers expect ws:// for a WebSocket
	// handshake.
	URL string `json:"url,omitempty"`

	// Method is the HTTP method of a WebSocket's exchange; usually "", because the HAR entry describes the
	// handshake.
	Method string `json:"method,omitempty"`
	// Status is the HTTP status of a WebSocket's exchange; usually 0, because the HAR entry describes the
	// handshake.
	Status int `json:"status,omitempty"`
	// RequestHeaders are the request header fields of a WebSocket's exchange; usually nil, because the HAR
	// entry has those of the handshake.
	RequestHeaders []header `json:"request_headers,omitempty"`
	// ResponseHeaders are the response header fields of a WebSocket's exchange; usually nil, because the HAR
	// entry has those of the handshake.
	ResponseHeaders []header `json:"response_headers,omitempty"`

	// HTTP is the HTTP version that the client spoke: "1.0", "1.1" or "2"; "" if none.
	HTTP string `json:"http"`
	// Started is the time at which the request began, in UTC with nanoseconds.
	Started time.Time `json:"started"`
	// DurationNS is the time from the start to the end of the exchange, in nanoseconds.
	DurationNS int64 `json:"duration_ns"`
	// Outcome is how the exchange ended; "" if it was in flight.
	Outcome captures.Outcome `json:"outcome"`
	// Error describes why the exchange failed, or which data was not stored; usually "".
	Error string `json:"error,omitempty"`
	// Client is the network address of the client, host:port.
	Client string `json:"client"`
	// Server is the network address of the server, host:port.
	Server string `json:"server"`
	// TLS describes the TLS connection to the server; the zero value means no TLS.
	TLS captures.TLS `json:"tls"`
	// Process is the client program that opened the connection; the zero value means unknown.
	Process captures.Process `json:"process,omitzero"`
	// Source names what recorded the exchange, such as "proxy", "reverse", "replay" or "import …".
	Source string `json:"source"`

	// RequestTrailers are the trailer fields after the request body, which HAR cannot represent.
	RequestTrailers []header `json:"request_trailers,omitempty"`
	// ResponseTrailers are the trailer fields after the response body, which HAR cannot represent.
	ResponseTrailers []header `json:"response_trailers,omitempty"`

	// Relations are the links to other exchanges, such as from a WebSocket to the exchange of its handshake.
	Relations []transfer.Relation `json:"relations,omitempty"`

	// Rewritten is set if rules changed the request or response before it was forwarded. It says whether the
	// entry contains the received or the forwarded bytes.
	Rewritten *captures.Rewritten `json:"rewritten,omitempty"`

	// WebSocket is the WebSocket that the entry's request opened.
	WebSocket *extension `json:"websocket,omitempty"`

	// Omitted is set if the bodies were too large to be written.
	Omitted bool `json:"omitted,omitempty"`
	// Chunks divide the bodies into the runs of bytes that arrived together, in order of arrival.
	Chunks []chunkMark `json:"chunks,omitempty"`

	// Up is the request body as sent on the wire, if the standard members of HAR contain it in another form,
	// such as decompressed; nil otherwise.
	Up []byte `json:"up,omitempty"`
	// Down is the response body as sent on the wire, if the standard members of HAR contain it in another
	// form, such as decompressed; nil otherwise.
	Down []byte `json:"down,omitempty"`

	// Protocol is the detected RPC protocol or streaming format of the bodies; import ignores it.
	Protocol decode.Protocol `json:"protocol"`
	// Service is the full name of the RPC service; "" if the exchange is not a call. Import ignores it.
	Service string `json:"service,omitempty"`
	// RPC is the name of the called method, without the service; "" if the exchange is not a call. Import
	// ignores it.
	RPC string `json:"rpc,omitempty"`
	// Codec is the encoding of the messages, such as "proto" or "json"; "" if unknown. Import ignores it.
	Codec string `json:"codec,omitempty"`
	// Code is the status code of the RPC call, such as "ok"; "" if unknown. Import ignores it.
	Code string `json:"code,omitempty"`
	// Message is the text of the RPC call's status; "" if there is none. Import ignores it.
	Message string `json:"message,omitempty"`
	// Frames are the decoded messages of the bodies, for other tools; import ignores them.
	Frames frames `json:"frames,omitempty"`
}

// frames are decoded frames for other tools. Import ignores them, because unwire can decode the bodies again.
type frames []decode.Line

// UnmarshalJSON ignores its input, because the frames are written for other tools only.
func (*frames) UnmarshalJSON([]byte) error { return nil }

// A chunkMark describes a recorded chunk: the next Len bytes of the body in direction Dir arrived TNS
// nanoseconds after the start of the exchange.
type chunkMark struct {
	// Dir is the direction of the bytes: "up" from client to server, or "down".
	Dir string `json:"dir"`
	// TNS is the time at which the bytes arrived, in nanoseconds since the start of the exchange.
	TNS int64 `json:"t_ns"`
	// Len is the number of bytes that arrived.
	Len int `json:"len"`

	// Message is the index, in the HAR entry, of the WebSocket message that contains the bytes; 0 also if
	// there is no WebSocket.
	Message int `json:"message,omitempty"`
	// Opcode is the opcode of the WebSocket message (RFC 6455); 0 continues a message, or there is no
	// WebSocket.
	Opcode uint8 `json:"opcode,omitempty"`
	// Final means that the bytes end a WebSocket message.
	Final bool `json:"final,omitempty"`
	// Compressed means that the WebSocket message was compressed on the wire.
	Compressed bool `json:"compressed,omitempty"`
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
