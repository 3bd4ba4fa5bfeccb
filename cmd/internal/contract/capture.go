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
	version
	ID         int64           `json:"id"`
	Method     string          `json:"method"`
	URL        string          `json:"url"`
	Service    string          `json:"service"`
	RPC        string          `json:"rpc"`
	Protocol   decode.Protocol `json:"protocol"`
	Codec      string          `json:"codec"`
	HTTP       string          `json:"http"`
	Status     int             `json:"status"`
	Code       string          `json:"code"`
	FramesUp   int             `json:"frames_up"`
	FramesDown int             `json:"frames_down"`

	// Bytes of the request and response bodies as transferred, before decompression.
	BytesUp   int64 `json:"bytes_up"`
	BytesDown int64 `json:"bytes_down"`

	// The path of the capture file; missing if only one is listed.
	File string `json:"file,omitempty"`

	Started    string  `json:"started"` // RFC 3339, nanoseconds
	DurationMS float64 `json:"duration_ms"`
	Complete   bool    `json:"complete"`
	Outcome    string  `json:"outcome"` // "" while it goes on
	Error      string  `json:"error,omitempty"`

	// The certificate of the server was not verified when the exchange was recorded.
	Unverified bool `json:"unverified,omitempty"`

	// The CA by which the server was trusted; only of a single exchange.
	CA *captures.Authority `json:"ca,omitempty"`

	// "requested" if the server asked for a client certificate and got none.
	ClientCertificate captures.ClientCertificate `json:"client_certificate,omitempty"`

	// The program that opened the connection; missing if not known.
	Process *Process `json:"process,omitempty"`

	// "websocket", "tls" or "tcp" for an exchange that is not HTTP; missing for HTTP.
	Transport captures.Transport `json:"transport,omitempty"`

	// How the exchange is related to other exchanges, such as a retry of one.
	Relations []Relation `json:"relations,omitempty"`

	// The number of the first exchange of the conversation to which this exchange belongs; missing if
	// it belongs to none.
	Joined int64 `json:"joined,omitempty"`

	// All pieces, if the exchange is the head of a conversation.
	Parts []int64 `json:"parts,omitempty"`

	// The mark that a user gave to the exchange, and the text of the note.
	Mark string `json:"mark,omitempty"`
	Note string `json:"note,omitempty"`

	// A rewriting rule changed the traffic of the exchange.
	Edited bool `json:"edited,omitempty"`

	// The number of notes about the exchange, its frames and fields, plus the number of marked frames
	// and fields.
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

// A Relation describes how an exchange is related to another one. Its members are numbers of exchanges.
type Relation struct {
	Kind     captures.RelationKind `json:"kind"`     // "handshake" …
	Exchange int64                 `json:"exchange"` // a WebSocket
	Target   int64                 `json:"target"`   // what opened it

	// The id of the capture with the related exchange, in hex; missing if it is the same capture.
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

// A Process is the program that made the connection of an exchange. Any member may be
// missing.
type Process struct {
	PID     int    `json:"pid,omitempty"`
	Name    string `json:"name,omitempty"`    // of the executable
	Client  string `json:"client,omitempty"`  // what the client calls itself
	Version string `json:"version,omitempty"` // of the client
}

// NewProcess is a program's member of a line; nil if nothing is known.
func NewProcess(p captures.Process) *Process {
	if p == (captures.Process{}) {
		return nil
	}
	return &Process{PID: p.PID, Name: p.Name, Client: p.Client, Version: p.Version}
}

// milliseconds is a duration in milliseconds, to the microsecond.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// A Frame is one line of `unwire show`: one message or other unit of a decoded stream.
type Frame struct {
	decode.Line // its version, too: frames of a HAR file are such lines

	// The full name of the message's type, from the definitions.
	Type string `json:"type,omitempty"`

	// In a conversation in pieces, the exchange that carried the frame, and the frame's
	// number in the client's half.
	Exchange int64  `json:"exchange,omitempty"`
	Number   *int64 `json:"append_seqno,omitempty"`

	// The program that opened the connection; missing if not known.
	Process *Process `json:"process,omitempty"`

	// Irregularities, such as a missing or repeated sequence number.
	Anomalies []string `json:"anomalies,omitempty"`

	// The error status with which the call ended; missing if it ended well.
	Status *callStatus `json:"status,omitempty"`

	// The notes that a user wrote about the frame and its fields.
	Notes []*PlaceNote `json:"notes,omitempty"`

	// If a rule changed the frame: the rule, and the frame as it was received, with its framing. The other members
	// of the line are those of the received frame.
	Rule     string `json:"rule,omitempty"`
	Received []byte `json:"received,omitempty"`

	// The bytes, with framing, that a rewriting rule forwarded instead of the frame: empty if it
	// dropped the frame, missing if it changed nothing.
	Forwarded *[]byte `json:"forwarded,omitempty"`
}

// Edited describes bytes that the proxy forwarded instead of a received frame.
type Edited struct {
	version

	// "added" if the bytes were inserted and replace no received frame.
	Event string `json:"event,omitempty"`
	Dir   string `json:"dir,omitempty"`
	Rule  string `json:"rule"`

	// The forwarded bytes, with framing.
	Forwarded []byte `json:"forwarded"`

	// The frames decoded from the forwarded bytes.
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
	Code    string         `json:"code"`
	Message string         `json:"message"`
	Details []statusDetail `json:"details"`
}

// A statusDetail is one detail message of an error status, with its decoded fields.
type statusDetail struct {
	envelope.Detail
	Tree []*field.Field `json:"tree"`
}

// newCallStatus decodes the details of an error; fieldsOf reads a message by the name of
// its type.
func newCallStatus(e *envelope.Error, fieldsOf func(*wire.Tree, string) []*field.Field) *callStatus {
	s := &callStatus{e.Code, e.Message, []statusDetail{}}
	for _, d := range e.Details {
		s.Details = append(s.Details, statusDetail{d, fieldsOf(wire.Parse(d.Value, wire.Options{}), d.Type)})
	}
	return s
}

func (f *Frame) setVersion() { f.V = 1 }

// NewFrame is the line of a frame of an exchange as a view reads it. FieldsOf reads the
// details of an error by the name of their type.
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

// Anomalies describes the irregularities at a frame of a conversation: before lists gaps in front of
// the frame, after everything else.
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
	version
	Method string `json:"method"`
	Dir    string `json:"dir"`
	Path   string `json:"path"`
	Type   string `json:"type"`
}

// An Explanation is a line of `--explain`: why a field is read as it is.
type Explanation struct {
	version
	Path string `json:"path"`
	Dir  string `json:"dir,omitempty"`
	Off  int    `json:"off"`

	// Messages is the number of messages from which the evidence was collected.
	Messages int `json:"messages"`

	// Seen is the number of parent messages that contain the field, Occurs the number of its values,
	// and Most the largest number of values in one message.
	Seen   int64 `json:"seen"`
	Occurs int64 `json:"occurs"`
	Most   int64 `json:"most"`

	Declared string             `json:"declared,omitempty"`
	Chosen   bool               `json:"chosen,omitempty"`
	Type     string             `json:"type,omitempty"` // that was chosen
	Error    string             `json:"error,omitempty"`
	Readings []ExplainedReading `json:"readings"`
	Settle   string             `json:"settle,omitempty"`
	Form     string             `json:"form,omitempty"`
	Shape    string             `json:"shape,omitempty"`
	Note     string             `json:"note,omitempty"`
}

// An ExplainedReading is one possible type of a field, with the evidence for and against it.
type ExplainedReading struct {
	Kind string         `json:"kind"`
	Type string         `json:"type"`
	P    float64        `json:"p"`
	Why  []kind.Feature `json:"why"`
}

// A Match is one line of `unwire grep`: a place where the pattern was found.
type Match struct {
	version
	Address  string `json:"address"`
	Exchange int64  `json:"exchange"`
	Dir      string `json:"dir"`
	Frame    *int   `json:"frame,omitempty"`  // none for what is of no frame
	Frames   []int  `json:"frames,omitempty"` // that the match spans
	Path     string `json:"path"`
	Kind     string `json:"kind"`
	Match    string `json:"match"`
	Before   string `json:"before"`
	After    string `json:"after"`

	// Name is Path with field names instead of numbers, as far as definitions are available.
	Name string `json:"name,omitempty"`
}

// MatchedExchange is a line of `unwire grep -l` and `-c`: an exchange that has matches.
type MatchedExchange struct {
	version
	Address  string `json:"address"`
	Exchange int64  `json:"exchange"`
	Count    *int   `json:"count,omitempty"`
}

// A TimelineLine is a run of frames of one exchange and direction in a timeline of several
// exchanges: `unwire show --timeline`.
type TimelineLine struct {
	version
	Exchange  int64  `json:"exchange"`
	Direction string `json:"dir"` // "up" or "down"
	First     int    `json:"first"`
	Last      int    `json:"last"`

	// Milliseconds since the first frame of the timeline.
	Milliseconds float64 `json:"t_ms"`
	Bytes        int     `json:"bytes"` // of the payloads as they were sent
	Summary      string  `json:"summary"`
}
