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

// An Exchange is a line of `unwire ls`.
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

	// Bytes of the bodies as they were on the wire, before decompression.
	BytesUp   int64 `json:"bytes_up"`
	BytesDown int64 `json:"bytes_down"`

	// The capture's file, if several are listed.
	File string `json:"file,omitempty"`

	Started    string  `json:"started"` // RFC 3339, nanoseconds
	DurationMS float64 `json:"duration_ms"`
	Complete   bool    `json:"complete"`
	Outcome    string  `json:"outcome"` // "" while it goes on
	Error      string  `json:"error,omitempty"`

	// The server's certificate was not checked.
	Unverified bool `json:"unverified,omitempty"`

	// The CA by which the server was trusted; only of a single exchange.
	CA *captures.Authority `json:"ca,omitempty"`

	// "requested" if the server asked for a client certificate and got none.
	ClientCertificate captures.ClientCertificate `json:"client_certificate,omitempty"`

	// The program that made the connection, where it is known.
	Process *Process `json:"process,omitempty"`

	// "websocket", "tls" or "tcp" where the exchange is not HTTP.
	Transport captures.Transport `json:"transport,omitempty"`

	// What the exchange is to others, and they to it.
	Relations []Relation `json:"relations,omitempty"`

	// The head of the conversation that it is a piece of.
	Joined int64 `json:"joined,omitempty"`

	// All pieces, if the exchange is the head of a conversation.
	Parts []int64 `json:"parts,omitempty"`

	// What a user marked the exchange with, and wrote about it.
	Mark string `json:"mark,omitempty"`
	Note string `json:"note,omitempty"`

	// How many notes there are about the exchange, its frames and their fields, and marks
	// of frames and fields.
	Notes int `json:"notes,omitempty"`
}

// NewExchange is the line of a listed exchange with its relations.
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

// A Relation says what an exchange is to another one. Its members are numbers of exchanges.
type Relation struct {
	Kind     captures.RelationKind `json:"kind"`     // "handshake" …
	Exchange int64                 `json:"exchange"` // a WebSocket
	Target   int64                 `json:"target"`   // what opened it

	// The id of the capture of the target, in hex; missing if it is the same.
	Capture string `json:"capture,omitempty"`
}

// NewRelations are the relations of an exchange.
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

// A Frame is a line of `unwire show`.
type Frame struct {
	decode.Line // its version, too: frames of a HAR file are such lines

	// The full name of the message's type, from the definitions.
	Type string `json:"type,omitempty"`

	// In a conversation in pieces, the exchange that carried the frame, and the frame's
	// number in the client's half.
	Exchange int64  `json:"exchange,omitempty"`
	Number   *int64 `json:"append_seqno,omitempty"`

	// The program that made the connection, where it is known.
	Process *Process `json:"process,omitempty"`

	// What was not as in a stream.
	Anomalies []string `json:"anomalies,omitempty"`

	// The error that ends the call.
	Status *callStatus `json:"status,omitempty"`

	// What a user wrote about the frame and its fields.
	Notes []*PlaceNote `json:"notes,omitempty"`
}

// A callStatus is the error that ends a call, with its details decoded.
type callStatus struct {
	Code    string         `json:"code"`
	Message string         `json:"message"`
	Details []statusDetail `json:"details"`
}

// A statusDetail is a detail of an error with its fields.
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

// Anomalies are what is remarked on a frame of a conversation, in words: what was
// missing before it, and the rest.
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

// A Reading is a line of `unwire show --choices`: how a field is read.
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

	// Messages is how many the evidence was drawn from.
	Messages int `json:"messages"`

	// Seen is in how many messages the field is, within the enclosing ones; Occurs how
	// many values it has, and Most how many in one message.
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

// An ExplainedReading is one of the ways to read a field, with what speaks for it.
type ExplainedReading struct {
	Kind string         `json:"kind"`
	Type string         `json:"type"`
	P    float64        `json:"p"`
	Why  []kind.Feature `json:"why"`
}

// A Match is a line of `unwire grep`.
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
