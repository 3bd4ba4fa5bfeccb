// Package jsonl reads and writes captures as JSON Lines, without any loss: each line is one exchange with the
// chunks of its bodies. Export writes the format, Import reads it. Package formats uses both.
//
//	{"v":1,"id":7,"method":"POST","url":"https://host/p.Service/Method","http":"2","status":200,
//	 "started":"2026-01-02T03:04:05.000000006Z","duration_ns":1500000,"outcome":"complete","error":"",
//	 "client":"127.0.0.1:5","server":"10.0.0.1:443","tls":{"version":"1.3"},"source":"proxy",
//	 "bytes_up":5,"bytes_down":0,
//	 "request_headers":[{"name":"content-type","value":"application/proto"}],"request_trailers":[],
//	 "response_headers":[],"response_trailers":[],
//	 "chunks":[{"dir":"up","t_ns":1000,"data":"aGVsbG8="}]}
//
// Bytes are in standard base64. Times are UTC; a chunk's t_ns is relative to started. A header field that is not
// valid UTF-8 has name_b64 and value_b64 instead of name and value. An outcome of "" means that the exchange was
// in flight. These members are present only if they are not empty:
//
//	"transport":"websocket"                     if it is not HTTP; or "tls", "tcp"
//	"process":{"pid":5,"name":"curl"}           the program that opened the connection
//	"relations":[{"kind":"handshake","exchange":6}]
//	"notes":[{"kind":"note","dir":"up","frame":0,"path":"1.2","value":"a session id?"}]
//	"rewritten":{"rules":["fast model"],"shown":"received"}
//
// rewritten means that rules changed the exchange on its way. shown says what the line has: the bytes as they were
// received, or as they were forwarded. Import ignores it.
//
// A note without dir and frame is about the exchange; one without path is about the frame.
//
// The chunks of a WebSocket are messages or parts of messages. opcode is that of RFC 6455 (0 continues a
// message), final marks the end of a message, and compressed means that the message was compressed on the wire:
//
//	{"dir":"up","t_ns":1000,"opcode":1,"final":true,"compressed":true,"data":"aGVsbG8="}
//
// Chunks are in order of arrival. They are the last member, so that neither the writer nor the reader has to
// buffer them.
//
// Source: captures/README.md#json-lines
package jsonl

import (
	"encoding/base64"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"unwire/captures"
	"unwire/captures/transfer"
)

// version is the value of the member "v" in every line of the JSON Lines format.
const version = 1

// A head is a line of the JSON Lines format, i.e. one exchange, without its chunks. The package comment
// documents the members.
type head struct {
	// V is the version of the JSON Lines format, always 1.
	V int `json:"v"`
	// ID is the number of the exchange in the exported capture, from 1.
	ID int64 `json:"id"`

	// Transport is the protocol whose payload is recorded: "websocket", "tls" or "tcp"; "" for HTTP.
	Transport captures.Transport `json:"transport,omitempty"`

	// Method is the HTTP method; "" if the connection does not carry HTTP.
	Method string `json:"method"`
	// URL is the absolute URL of the request; tcp://host:port or tls://host:port for a connection without
	// HTTP.
	URL string `json:"url"`
	// HTTP is the HTTP version that the client spoke: "1.0", "1.1" or "2"; "" if none.
	HTTP string `json:"http"`
	// Status is the HTTP status code; 0 if there was no response.
	Status int `json:"status"`
	// Started is the time at which the request began, in UTC.
	Started time.Time `json:"started"`
	// DurationNS is the time from the start to the end of the exchange in nanoseconds; 0 while it is in
	// flight.
	DurationNS int64 `json:"duration_ns"`
	// Outcome is how the exchange ended; "" if it was in flight.
	Outcome captures.Outcome `json:"outcome"`
	// Error describes why the exchange failed, or which data was not stored; usually "".
	Error string `json:"error"`
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
	// BytesUp is the number of bytes of the request body as sent.
	BytesUp int64 `json:"bytes_up"`
	// BytesDown is the number of bytes of the response body as sent.
	BytesDown int64 `json:"bytes_down"`
	// RequestHeaders are the header fields of the request, in wire order.
	RequestHeaders []field `json:"request_headers"`
	// RequestTrailers are the trailer fields after the request body, in wire order.
	RequestTrailers []field `json:"request_trailers"`
	// ResponseHeaders are the header fields of the response, in wire order.
	ResponseHeaders []field `json:"response_headers"`
	// ResponseTrailers are the trailer fields after the response body, in wire order.
	ResponseTrailers []field `json:"response_trailers"`

	// Relations are the links to other exchanges, such as from a WebSocket to the exchange of its handshake.
	Relations []transfer.Relation `json:"relations,omitempty"`
	// Notes are the notes and marks that a user attached to the exchange, its frames or their fields.
	Notes []transfer.Note `json:"notes,omitempty"`
	// Rewritten is set if rewrite rules changed the exchange before it was forwarded, and says whether the
	// line contains the received or the forwarded bytes; nil otherwise.
	Rewritten *captures.Rewritten `json:"rewritten,omitempty"`
}

// A field is one header field. NameB64 and ValueB64 replace Name and Value if these are not valid UTF-8.
type field struct {
	// Name is the name of the header field; nil if the name or value is not valid UTF-8, so that the base64
	// members are used.
	Name *string `json:"name,omitempty"`
	// Value is the value of the header field; nil if the name or value is not valid UTF-8, so that the base64
	// members are used.
	Value *string `json:"value,omitempty"`
	// NameB64 is the name of the header field, in base64 in JSON, if the name or value is not valid UTF-8;
	// nil otherwise.
	NameB64 []byte `json:"name_b64,omitempty"`
	// ValueB64 is the value of the header field, in base64 in JSON, if the name or value is not valid UTF-8;
	// nil otherwise.
	ValueB64 []byte `json:"value_b64,omitempty"`
}

// A chunk is the JSON form of body bytes that arrived together. TNS is nanoseconds since the start of the
// exchange.
type chunk struct {
	// Dir is the direction: "up" from client to server, or "down".
	Dir string `json:"dir"`
	// TNS is the time of arrival, in nanoseconds since the start of the exchange.
	TNS int64 `json:"t_ns"`
	// Opcode is the opcode of a WebSocket message (RFC 6455); 0 continues the message before it.
	Opcode uint8 `json:"opcode"`
	// Final means that the chunk ends a WebSocket message.
	Final bool `json:"final"`
	// Compressed means that the WebSocket message was compressed on the wire; Data is decompressed.
	Compressed bool `json:"compressed"`
	// Data is the bytes that arrived, in base64 in JSON.
	Data []byte `json:"data"`
}

// opcode returns the WebSocket opcode of a chunk, combined with its flags. It is an error if the opcode is
// invalid, or set although the transport t is not a WebSocket.
func (c *chunk) opcode(t captures.Transport) (captures.Opcode, error) {
	op := captures.Opcode(c.Opcode)
	switch {
	case t != captures.WebSocket && (c.Opcode != 0 || c.Final || c.Compressed):
		return 0, fmt.Errorf("opcode: this member is allowed only if the transport of the exchange is %s", captures.WebSocket)
	case t != captures.WebSocket:
		return 0, nil
	case !op.Known():
		return 0, fmt.Errorf("opcode: %d is not a WebSocket opcode", c.Opcode)
	}
	if c.Final {
		op |= captures.OpFinal
	}
	if c.Compressed {
		op |= captures.OpCompressed
	}
	return op, nil
}

// headOf converts an exchange to the JSON form of a line, without relations and notes.
func headOf(ex *captures.Exchange) head {
	return head{
		V: version, ID: ex.ID, Transport: ex.Transport, Method: ex.Method, URL: ex.URL, HTTP: ex.HTTP, Status: ex.Status,
		Started: ex.Started.UTC(), DurationNS: int64(ex.Duration), Outcome: ex.Outcome, Error: ex.Error,
		Client: ex.Client, Server: ex.Server, TLS: ex.TLS, Process: ex.Process, Source: ex.Source, BytesUp: ex.BytesUp, BytesDown: ex.BytesDown,
		RequestHeaders: fieldsOf(ex.RequestHeaders), RequestTrailers: fieldsOf(ex.RequestTrailers),
		ResponseHeaders: fieldsOf(ex.ResponseHeaders), ResponseTrailers: fieldsOf(ex.ResponseTrailers),
	}
}

// exchange converts the JSON form of a line to an exchange.
func (h *head) exchange() captures.Exchange {
	t := h.Transport
	if t == "http" {
		t = captures.HTTP
	}
	return captures.Exchange{
		Transport: t, Process: h.Process,
		Method: h.Method, URL: h.URL, HTTP: h.HTTP, Status: h.Status, Started: h.Started, Error: h.Error,
		Client: h.Client, Server: h.Server, TLS: h.TLS, Source: h.Source,
		RequestHeaders: headersOf(h.RequestHeaders), RequestTrailers: headersOf(h.RequestTrailers),
		ResponseHeaders: headersOf(h.ResponseHeaders), ResponseTrailers: headersOf(h.ResponseTrailers),
	}
}

// check returns an error if a required member of the line is missing, or a member is invalid.
func (h *head) check() error {
	switch {
	case h.V == 0:
		return fmt.Errorf("the line has no member v, so this is not a capture in JSON Lines")
	case h.V != version:
		return fmt.Errorf("v is %d, but this version of unwire reads only version %d", h.V, version)
	case h.URL == "":
		return fmt.Errorf("the member url is missing")
	case h.Status < 0 || h.Status > 999:
		return fmt.Errorf("status: %d is out of range", h.Status)
	// Nanoseconds since 1970 in 64 bits end in the year 2262.
	case !h.Started.IsZero() && (h.Started.Year() < 1970 || h.Started.Year() >= 2262):
		return fmt.Errorf("started: the year %d is out of range", h.Started.Year())
	case h.DurationNS < 0:
		return fmt.Errorf("duration_ns: %d is out of range", h.DurationNS)
	case !isTransport(h.Transport):
		return fmt.Errorf("transport: %q is not a known transport", transfer.Clip(string(h.Transport)))
	case h.Process.PID < 0 || h.Process.PID > math.MaxInt32:
		return fmt.Errorf("process.pid: %d is out of range", h.Process.PID)
	case len(h.Relations) > maxRelations:
		return fmt.Errorf("relations: the list has more than %d entries", maxRelations)
	case len(h.Notes) > maxNotes:
		return fmt.Errorf("notes: the list has more than %d entries", maxNotes)
	}

	// Relations are checked before the exchange is begun.
	for i, r := range h.Relations {
		if err := r.Check(); err != nil {
			return fmt.Errorf("relations[%d].%w", i, err)
		}
	}
	switch h.Outcome {
	case captures.InFlight, captures.Complete, captures.Reset, captures.Canceled, captures.Incomplete, captures.Failed:
		return nil
	}
	return fmt.Errorf("outcome: %q is not a known outcome", h.Outcome)
}

// maxTransport is the longest name of a transport, in bytes.
const maxTransport = 32

// isTransport reports whether t is a valid name of a transport. The list of transports is open.
func isTransport(t captures.Transport) bool {
	return len(t) <= maxTransport && strings.Trim(string(t), "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// fieldsOf converts headers to their JSON form.
func fieldsOf(hs captures.Headers) []field {
	out := make([]field, len(hs))
	for i, h := range hs {
		if utf8.ValidString(h.Name) && utf8.ValidString(h.Value) {
			out[i] = field{Name: &h.Name, Value: &h.Value}
		} else {
			out[i] = field{NameB64: []byte(h.Name), ValueB64: []byte(h.Value)}
		}
	}
	return out
}

// headersOf converts the JSON form to headers.
func headersOf(fs []field) captures.Headers {
	var out captures.Headers
	for _, f := range fs {
		h := captures.Header{Name: string(f.NameB64), Value: string(f.ValueB64)}
		if f.Name != nil {
			h.Name = *f.Name
		}
		if f.Value != nil {
			h.Value = *f.Value
		}
		out = append(out, h)
	}
	return out
}

// direction parses the name of a direction, "up" or "down".
func direction(s string) (captures.Direction, error) {
	switch s {
	case captures.Up.String():
		return captures.Up, nil
	case captures.Down.String():
		return captures.Down, nil
	}
	return 0, fmt.Errorf("dir must be up or down, not %q", transfer.Clip(s))
}

// appendChunk appends the JSON form of a chunk to dst. message means that the chunk belongs to a WebSocket, so
// its opcode is written too. For speed, appendChunk does not use encoding/json.
func appendChunk(dst []byte, c captures.Chunk, message bool) []byte {
	dst = append(dst, `{"dir":"`...)
	dst = append(dst, c.Dir.String()...)
	dst = fmt.Appendf(dst, `","t_ns":%d`, int64(c.T))
	if message {
		dst = fmt.Appendf(dst, `,"opcode":%d`, c.Opcode.Kind())
		if c.Opcode&captures.OpFinal != 0 {
			dst = append(dst, `,"final":true`...)
		}
		if c.Opcode&captures.OpCompressed != 0 {
			dst = append(dst, `,"compressed":true`...)
		}
	}
	dst = append(dst, `,"data":"`...)
	dst = base64.StdEncoding.AppendEncode(dst, c.Data)
	return append(dst, `"}`...)
}
