package contract

import (
	"encoding/hex"
	"time"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/conversation"
	"unwire/decode/envelope"
	"unwire/decode/field"
	"unwire/decode/kind"
	"unwire/decode/wire"
)

// An Exchange is one line of `unwire ls`: a recorded request with its response, or a connection.
type Exchange struct {
	// version adds the member v, the version number of the JSON format.
	version

	// ID is the number of the exchange in the capture.
	ID int64 `json:"id"`

	// Method is the HTTP method; "" for connections without HTTP.
	Method string `json:"method"`

	// URL is the absolute URL.
	URL string `json:"url"`

	// Service is the full name of the service; "" if the exchange is not an RPC.
	Service string `json:"service"`

	// RPC is the name of the method; "" if the exchange is not an RPC.
	RPC string `json:"rpc"`

	// Protocol is the protocol of the messages, such as connect or grpc.
	Protocol decode.Protocol `json:"protocol"`

	// Codec is the encoding of the messages, such as proto or json.
	Codec string `json:"codec"`

	// HTTP is the version of HTTP that the client used: 1.0, 1.1 or 2; "" for connections without HTTP.
	HTTP string `json:"http"`

	// Status is the HTTP status; 0 until it is known.
	Status int `json:"status"`

	// Code is the code with which the call ended, such as ok or not_found.
	Code string `json:"code"`

	// FramesUp is the number of frames from the client.
	FramesUp int `json:"frames_up"`

	// FramesDown is the number of frames from the server.
	FramesDown int `json:"frames_down"`

	// BytesUp is the size of the request body as transferred, before decompression.
	BytesUp int64 `json:"bytes_up"`

	// BytesDown is the size of the response body as transferred, before decompression.
	BytesDown int64 `json:"bytes_down"`

	// File is the path of the capture; missing if only one capture is listed.
	File string `json:"file,omitempty"`

	// Started is when the request began, in RFC 3339 with nanoseconds.
	Started string `json:"started"`

	// DurationMS is the time from the start to the end, in milliseconds.
	DurationMS float64 `json:"duration_ms"`

	// Complete means that both directions ended normally.
	Complete bool `json:"complete"`

	// Outcome is how the exchange ended: complete, reset, canceled, incomplete or failed; "" while it is
	// in flight.
	Outcome string `json:"outcome"`

	// Error is why the exchange failed, or what was not stored.
	Error string `json:"error,omitempty"`

	// Unverified means that the certificate of the server was not verified when the exchange was recorded.
	Unverified bool `json:"unverified,omitempty"`

	// CA is the certificate authority by which the server was trusted; only for a single exchange.
	CA *captures.Authority `json:"ca,omitempty"`

	// ClientCertificate is "requested" if the server asked for a client certificate and got none, and
	// "sent" if it got one.
	ClientCertificate captures.ClientCertificate `json:"client_certificate,omitempty"`

	// Process is the program that opened the connection; missing if not known.
	Process *Process `json:"process,omitempty"`

	// Transport is "websocket", "tls" or "tcp" for an exchange that is not HTTP; missing for HTTP.
	Transport captures.Transport `json:"transport,omitempty"`

	// Relations say how the exchange is related to other exchanges, such as a retry of one.
	Relations []Relation `json:"relations,omitempty"`

	// Joined is the number of the first exchange of the conversation to which this exchange belongs;
	// missing if it belongs to none.
	Joined int64 `json:"joined,omitempty"`

	// Parts are the numbers of all exchanges of the conversation, if this exchange is the first of them.
	Parts []int64 `json:"parts,omitempty"`

	// Mark is the mark that a user gave to the exchange.
	Mark string `json:"mark,omitempty"`

	// Note is the text of the note that a user wrote about the exchange.
	Note string `json:"note,omitempty"`

	// Edited means that a rewriting rule changed the traffic of the exchange.
	Edited bool `json:"edited,omitempty"`

	// Notes is the number of notes about the exchange, its frames and fields, plus the number of marked
	// frames and fields.
	Notes int `json:"notes,omitempty"`
}

// NewExchange builds the JSON object for one exchange of a list, with its relations.
func NewExchange(ex *conversation.Listed, relations []captures.Relation) *Exchange {
	e := &Exchange{
		ID: ex.ID, Method: ex.Method, URL: ex.URL, Service: ex.Service, RPC: ex.RPC,
		Protocol: ex.Protocol, Codec: ex.Codec, HTTP: ex.HTTP, Status: ex.Status, Code: ex.Code,
		FramesUp: ex.FramesUp, FramesDown: ex.FramesDown, BytesUp: ex.BytesUp, BytesDown: ex.BytesDown,
		Started: ex.Started.Format(time.RFC3339Nano), DurationMS: milliseconds(ex.Duration),
		Complete: ex.Outcome == captures.Complete, Outcome: string(ex.Outcome), Error: ex.Exchange.Error,
		Unverified: ex.TLS.Unverified, ClientCertificate: ex.TLS.ClientCertificate, Process: NewProcess(ex.Process),
		Transport: ex.Transport, Relations: NewRelations(relations), Joined: ex.Joined, Parts: ex.Parts,
	}
	if ca := ex.TLS.CA; ca != (captures.Authority{}) {
		e.CA = &ca
	}
	return e
}

// A Relation says how an exchange is related to another one.
type Relation struct {
	// Kind is the kind of the relation, such as handshake or retry of.
	Kind captures.RelationKind `json:"kind"`

	// Exchange is the number of the exchange that has the relation, such as a WebSocket.
	Exchange int64 `json:"exchange"`

	// Target is the number of the exchange that it refers to, such as the handshake of the WebSocket.
	Target int64 `json:"target"`

	// Capture is the id of the capture with the related exchange, in hex; missing if it is the same
	// capture.
	Capture string `json:"capture,omitempty"`
}

// NewRelations converts the relations of an exchange to their JSON objects.
func NewRelations(list []captures.Relation) []Relation {
	var out []Relation
	for _, r := range list {
		out = append(out, Relation{Kind: r.Kind, Exchange: r.Exchange, Target: r.Target, Capture: hex.EncodeToString([]byte(r.Capture))})
	}
	return out
}

// A Process is the program that made the connection of an exchange. Members that are not known are
// missing.
type Process struct {
	// PID is the process id.
	PID int `json:"pid,omitempty"`

	// Name is the name of the executable.
	Name string `json:"name,omitempty"`

	// Client is the product that the client names in its User-Agent.
	Client string `json:"client,omitempty"`

	// Version is the version of that product.
	Version string `json:"version,omitempty"`
}

// NewProcess returns the JSON object for a program; nil if nothing is known about it.
func NewProcess(p captures.Process) *Process {
	if p == (captures.Process{}) {
		return nil
	}
	return &Process{PID: p.PID, Name: p.Name, Client: p.Client, Version: p.Version}
}

// milliseconds returns a duration in milliseconds, rounded down to microseconds.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// A Frame is one line of `unwire show`: one message or other unit of a decoded stream.
type Frame struct {
	decode.Line // its version, too: frames of a HAR file are such lines

	// Type is the full name of the message's type, from the definitions.
	Type string `json:"type,omitempty"`

	// Exchange is the number of the exchange that carried the frame, if several exchanges carry the
	// conversation.
	Exchange int64 `json:"exchange,omitempty"`

	// Number is the number of the message among those of the client, if several exchanges carry the
	// conversation.
	Number *int64 `json:"append_seqno,omitempty"`

	// Process is the program that opened the connection; missing if not known.
	Process *Process `json:"process,omitempty"`

	// Anomalies are irregularities, such as a missing or repeated sequence number.
	Anomalies []string `json:"anomalies,omitempty"`

	// Status is the error with which the call ended; missing if it ended without an error.
	Status *callStatus `json:"status,omitempty"`

	// Notes are the notes that a user wrote about the frame and its fields.
	Notes []*PlaceNote `json:"notes,omitempty"`

	// Rule is the rule that changed the frame. The other members describe the frame as it was received.
	Rule string `json:"rule,omitempty"`

	// Received is the frame as it was received, with its framing; only for a frame that a rule changed.
	Received []byte `json:"received,omitempty"`

	// Forwarded are the bytes, with framing, that a rewriting rule forwarded instead of the frame: empty
	// if it dropped the frame, missing if it changed nothing.
	Forwarded *[]byte `json:"forwarded,omitempty"`
}

// Edited describes bytes that the proxy forwarded instead of a received frame.
type Edited struct {
	// version adds the member v, the version number of the JSON format.
	version

	// Event is "added" if the bytes were inserted and replace no received frame.
	Event string `json:"event,omitempty"`

	// Dir is the direction, up or down.
	Dir string `json:"dir,omitempty"`

	// Rule is the rule that changed or added the bytes.
	Rule string `json:"rule"`

	// Forwarded are the forwarded bytes, with framing.
	Forwarded []byte `json:"forwarded"`

	// Frames are the frames decoded from the forwarded bytes.
	Frames []decode.Frame `json:"-"`
}

// AddEdit adds to the JSON object of a frame the bytes that were forwarded instead of it.
func (f *Frame) AddEdit(received *decode.Frame, e *Edited) {
	if e == nil {
		return
	}
	f.Rule, f.Received, f.Forwarded = e.Rule, received.Raw, &e.Forwarded
	if received.Framed {
		f.Received = envelope.Append(nil, received.Flags, received.Raw)
	}
	if e.Forwarded == nil {
		f.Forwarded = &[]byte{}
	}
}

// A callStatus is the error status at the end of a call, with its details decoded.
type callStatus struct {
	// Code is the name of the Connect or gRPC code.
	Code string `json:"code"`

	// Message is the error message.
	Message string `json:"message"`

	// Details are the detail messages of the error.
	Details []statusDetail `json:"details"`
}

// A statusDetail is one detail message of an error status, with its decoded fields.
type statusDetail struct {
	// Detail is the detail message as it was received; its fields become members of the JSON object.
	envelope.Detail

	// Tree are the fields of the detail message.
	Tree []*field.Field `json:"tree"`
}

// newCallStatus returns the JSON object for an error. fieldsOf decodes a detail message by the name of
// its type.
func newCallStatus(e *envelope.Error, fieldsOf func(*wire.Tree, string) []*field.Field) *callStatus {
	s := &callStatus{e.Code, e.Message, []statusDetail{}}
	for _, d := range e.Details {
		s.Details = append(s.Details, statusDetail{d, fieldsOf(wire.Parse(d.Value, wire.Options{}), d.Type)})
	}
	return s
}

// setVersion sets the version number, which is in the embedded type.
func (f *Frame) setVersion() { f.V = 1 }

// NewFrame returns the JSON object for a frame of the exchange at, with its message read as view says.
// fieldsOf decodes a detail message of an error by the name of its type.
func NewFrame(at conversation.Resolved, f *decode.Frame, view decode.View, fieldsOf func(t *wire.Tree, name string) []*field.Field) *Frame {
	l := &Frame{Line: view.Line(f), Process: NewProcess(at.Process)}
	if at.Joined != nil {
		o := at.Joined.OriginOf(f)
		if l.Exchange = o.Exchange; o.Number >= 0 {
			l.Number = &o.Number
		}
		before, after := Anomalies(at.Joined, f)
		l.Anomalies = append(before, after...)
	}
	if view.Type != nil && f.Tree != nil {
		l.Type = string(view.Type.FullName())
	}
	if f.End != nil && f.End.Error != nil {
		l.Status = newCallStatus(f.End.Error, fieldsOf)
	}
	return l
}

// Anomalies describes what is irregular at a frame of a conversation. before are gaps before the frame,
// and after is everything else.
func Anomalies(c *conversation.Conversation, f *decode.Frame) (before, after []string) {
	for _, an := range c.AnomaliesAt(f) {
		if an.Kind == conversation.Gap {
			before = append(before, an.String())
		} else {
			after = append(after, an.String())
		}
	}
	return before, after
}

// A Reading is one line of `unwire show --choices`: the type that the user chose for a field.
type Reading struct {
	// version adds the member v, the version number of the JSON format.
	version

	// Method is the service and the method, with slashes.
	Method string `json:"method"`

	// Dir is the direction, up or down.
	Dir string `json:"dir"`

	// Path is the path of the field.
	Path string `json:"path"`

	// Type is the chosen type.
	Type string `json:"type"`
}

// An Explanation is a line of `--explain`: the evidence for the type by which a field is read.
type Explanation struct {
	// version adds the member v, the version number of the JSON format.
	version

	// Path is the path of the field.
	Path string `json:"path"`

	// Dir is the direction, up or down.
	Dir string `json:"dir,omitempty"`

	// Off is the offset of the field in the message.
	Off int `json:"off"`

	// Messages is the number of messages from which the evidence was collected.
	Messages int `json:"messages"`

	// Seen is the number of parent messages that contain the field.
	Seen int64 `json:"seen"`

	// Occurs is the number of values of the field.
	Occurs int64 `json:"occurs"`

	// Most is the largest number of values in one message.
	Most int64 `json:"most"`

	// Declared is the type in the definitions; missing if they do not declare the field.
	Declared string `json:"declared,omitempty"`

	// Chosen means that a user chose the type.
	Chosen bool `json:"chosen,omitempty"`

	// Type is the type that the user chose.
	Type string `json:"type,omitempty"`

	// Error is why the value cannot be read as the chosen type.
	Error string `json:"error,omitempty"`

	// Readings are the possible types, the most likely first.
	Readings []ExplainedReading `json:"readings"`

	// Settle says which values would decide between the possible types.
	Settle string `json:"settle,omitempty"`

	// Form is what a string looks like, such as uuid.
	Form string `json:"form,omitempty"`

	// Shape is the well-known type that a message looks like.
	Shape string `json:"shape,omitempty"`

	// Note has further remarks.
	Note string `json:"note,omitempty"`
}

// An ExplainedReading is one possible type of a field, with the evidence for and against it.
type ExplainedReading struct {
	// Kind is the kind of value, such as string or varint.
	Kind string `json:"kind"`

	// Type is the type, such as int64.
	Type string `json:"type"`

	// P is the probability of the type.
	P float64 `json:"p"`

	// Why is the evidence for and against the type.
	Why []kind.Feature `json:"why"`
}

// A Match is one line of `unwire grep`: a place where the pattern was found.
type Match struct {
	// version adds the member v, the version number of the JSON format.
	version

	// Address is the address of the frame, or of the exchange for a match outside frames.
	Address string `json:"address"`

	// Exchange is the number of the exchange.
	Exchange int64 `json:"exchange"`

	// Dir is the direction, up or down.
	Dir string `json:"dir"`

	// Frame is the number of the frame; missing for a match outside frames, such as in a header.
	Frame *int `json:"frame,omitempty"`

	// Frames are the numbers of the frames that the match extends over, if there are several.
	Frames []int `json:"frames,omitempty"`

	// Path is the path of the field.
	Path string `json:"path"`

	// Kind is the kind of the field.
	Kind string `json:"kind"`

	// Match is the text that matched.
	Match string `json:"match"`

	// Before is the text before it.
	Before string `json:"before"`

	// After is the text after it.
	After string `json:"after"`

	// Name is Path with field names instead of numbers, as far as definitions are available.
	Name string `json:"name,omitempty"`
}

// A MatchedExchange is a line of `unwire grep -l` and `-c`: an exchange that has matches.
type MatchedExchange struct {
	// version adds the member v, the version number of the JSON format.
	version

	// Address is the address of the exchange.
	Address string `json:"address"`

	// Exchange is the number of the exchange.
	Exchange int64 `json:"exchange"`

	// Count is the number of matches; missing without -c.
	Count *int `json:"count,omitempty"`
}

// A TimelineLine is a line of `unwire show --timeline`: a run of similar frames of one exchange and
// direction.
type TimelineLine struct {
	// version adds the member v, the version number of the JSON format.
	version

	// Exchange is the number of the exchange.
	Exchange int64 `json:"exchange"`

	// Direction is "up" or "down".
	Direction string `json:"dir"`

	// First is the number of the first frame of the run.
	First int `json:"first"`

	// Last is the number of the last frame of the run.
	Last int `json:"last"`

	// Milliseconds is the time of the first frame of the run since the first frame of the timeline.
	Milliseconds float64 `json:"t_ms"`

	// Bytes is the total size of the payloads as they were sent.
	Bytes int `json:"bytes"`

	// Summary describes the content of the frames for people.
	Summary string `json:"summary"`
}
