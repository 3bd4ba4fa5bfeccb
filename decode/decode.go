// Package decode turns the exchanges of a capture into frames, trees and annotated fields. It connects packages
// captures, envelope, wire and kind.
//
// A capture goes in, and Exchanges with Frames come out. Decode decodes a whole exchange, EachFrame one frame at
// a time in constant memory. A Stream decodes an exchange while it is being recorded, and Watch does that for
// all exchanges of a recording:
//
//	ex, err := decode.Decode(ctx, capture, 1, decode.Options{})
//	for i := range ex.Frames {
//		for _, f := range (decode.View{}).Fields(ex.Frames[i].Tree) {
//			fmt.Println(f.N, f.Type, f.Value)
//		}
//	}
//
// Each exchange is classified by its headers (a Call) and ends with a status. For HTTP, a frame is an envelope,
// an event or a unary body. For a WebSocket, it is a message, a control frame, or one of several envelopes in a
// message. Other connections have a frame for each chunk, or for each message if Options.Split names the
// delimiting.
//
// An Inner is a message inside a string or bytes field, encoded in base64 or similar. A carried message belongs
// to another call and was transported in pieces (package conversation).
//
// A View determines how fields are decoded: by the user's choice, by a schema, or by a Pool, which is evidence
// from frames of the same method. It returns annotated fields (package field), also for a field that is
// truncated at the end of the data. A Line is the JSON form of a frame.
//
// Commands and the packages below decode use this package. It neither reassembles conversations nor compares or
// searches; packages conversation, diff and search do. It receives schemas as descriptors.
package decode

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"unwire/captures"
	"unwire/captures/profile"
	"unwire/decode/envelope"
	"unwire/decode/kind"
	"unwire/decode/wire"
)

// A Protocol is how an exchange transports its messages, as named in JSON. For an exchange without HTTP it is
// the name of the transport: websocket, tcp or tls.
type Protocol string

const (
	// ConnectUnary is a Connect call with a single request and response.
	ConnectUnary Protocol = "connect-unary"

	// ConnectGet is a unary Connect call sent as an HTTP GET, with the request in the URL's query.
	ConnectGet Protocol = "connect-get"

	// ConnectStream is a Connect stream of envelopes.
	ConnectStream Protocol = "connect-stream"

	// GRPC, GRPCWeb and GRPCWebText are the variants of gRPC, the last one in base64.
	GRPC Protocol = "grpc"
	// GRPCWeb is gRPC-Web in its binary form, and GRPCWebText in base64.
	GRPCWeb     Protocol = "grpc-web"
	GRPCWebText Protocol = "grpc-web-text"

	// SSE is a response of server-sent events.
	SSE Protocol = "sse"

	// ndjson is a response with a JSON value on each line.
	ndjson Protocol = "ndjson"

	// awsEvents is a body of messages in the AWS event stream encoding.
	awsEvents Protocol = "aws-eventstream"

	// HTTP is any other exchange over HTTP.
	HTTP Protocol = "http"
)

// A Call is the classification of an exchange by its URL and headers: protocol, codec and method.
type Call struct {
	// Protocol is the protocol that carries the messages, such as Connect or gRPC.
	Protocol Protocol

	// Codec is the encoding of messages: "proto", "json", or the media subtype.
	Codec string

	// Service is the full name of the service, such as "pkg.v1.Service"; "" for plain HTTP.
	Service string

	// RPC is the method's name without its service.
	RPC string
}

// A Frame is one message of an exchange, with the results of decoding it.
type Frame struct {
	// Dir is the direction: from the client (Up) or from the server (Down).
	Dir captures.Direction

	// Opcode is set in frames of a WebSocket. Of the opcode's flags, only OpCompressed is kept.
	Opcode captures.Opcode

	// Seq is the number of the frame in its direction, from 0.
	Seq int

	// T is when the last byte of the frame was recorded, since the beginning of the exchange.
	T time.Duration

	// Tree is the parsed message. It is nil if the data is not protobuf.
	Tree *wire.Tree

	// End is the status in a Connect end-of-stream frame, a gRPC-Web trailer or a unary error. It is nil in
	// other frames.
	End *envelope.End

	// Inner are encoded messages that were found inside the frame's fields, for example protobuf in base64.
	Inner []Inner

	// Frame is the frame as transported: offset, payload, flags and error.
	envelope.Frame

	// Close is the content of a WebSocket close frame; nil for other frames.
	Close *Close

	// at is the sequence number of the capture's chunk that completed the frame.
	at int64
}

// An Exchange is a captured exchange with its decoded frames. Frames of both directions are in the order in which
// their last bytes were recorded.
type Exchange struct {
	// Exchange is the record in the capture: headers, times, sizes.
	captures.Exchange

	// Call is the classification of the exchange by URL and headers.
	Call

	// Code is "ok" or the name of the Connect/gRPC status code. It is "" while the status is unknown.
	Code string

	// Message is the message of the error with which the call ended, or "".
	Message string

	// Frames are the decoded frames of both directions.
	Frames []Frame

	// Err describes everything that could not be decoded, or is nil. Frames before the error are present.
	Err error

	// Profile is the description of the service that was used for decoding, or nil.
	Profile *profile.Profile

	// Split is the value of Options.Split that was used.
	Split Splitting

	// Choices are the types that users chose for fields of this method, by direction. The capture stores them.
	Choices [2][]kind.Choice
}

// CallName returns a name for display: "service/method", or the HTTP method and the URL if the exchange is not a
// call.
func (ex *Exchange) CallName() string {
	if ex.Service != "" {
		return ex.Service + "/" + ex.RPC
	}
	return strings.TrimSpace(ex.Method + " " + ex.URL)
}

// Options bounds decoding. The zero value selects the defaults.
type Options struct {
	// Profile describes the service. The default is the source's profile, if any.
	Profile *profile.Profile

	// NoTrees omits the decoding of fields, and everything found inside frames.
	NoTrees bool

	// NoChoices means that the source stores no types that a user chose for fields. It saves a query for each
	// exchange; see HasChoices.
	NoChoices bool

	// NoInner omits the decoding of messages encoded inside fields.
	NoInner bool

	// MaxFrame is the maximum size in bytes of a frame or a unary body. The default is 64 MiB.
	MaxFrame int64

	// MaxInflated is the maximum size in bytes of a frame after decompression. The default is 64 MiB.
	MaxInflated int64

	// MaxFrames is the maximum number of frames of an exchange. Further frames are omitted, and Err reports
	// that. The default is 200,000.
	MaxFrames int

	// MaxTotal is the maximum number of bytes of an exchange's frames after decompression. Further compressed
	// frames keep 64 KiB each. The default is 128 MiB.
	MaxTotal int64

	// MaxNodes is the maximum number of nodes in an exchange's trees. Further frames have no tree. The default
	// is 1,000,000.
	MaxNodes int

	// Wire are the options for each tree. By default, a tree may use all nodes that MaxNodes leaves.
	Wire wire.Options

	// Split is how data without HTTP is divided into messages. By default, each message of a WebSocket and each
	// chunk of another connection is a frame.
	Split Splitting
}

// batchFrames is the maximum number of frames that Decode collects in one slice.
const batchFrames = 256

// Decode decodes exchange id of src.
//
// Errors: src cannot be read. The part that was read is returned, or nil if there is none. Defects of the
// exchange itself are in Exchange.Err instead.
func Decode(ctx context.Context, src captures.Source, id int64, o Options) (*Exchange, error) {
	rec, err := src.Exchange(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("decode: exchange %d: %w", id, err)
	}
	return DecodeRecord(ctx, src, rec, o)
}

// DecodeRecord is Decode for an exchange that the caller has read from src.
func DecodeRecord(ctx context.Context, src captures.Source, rec *captures.Exchange, o Options) (*Exchange, error) {
	if o.Profile == nil {
		o.Profile = src.Profile()
	}
	s := NewStream(rec, o)
	// Frames are large, so collect them in batches and move each only once.
	var batches [][]Frame
	var last []Frame
	var err error
	for chunk, cerr := range src.Chunks(ctx, rec.ID, 0) {
		if cerr != nil {
			err = fmt.Errorf("decode: exchange %d: %w", rec.ID, cerr)
			break
		}
		fed := s.Feed(chunk)
		if len(fed) > batchFrames {
			batches, last = append(batches, last, fed), nil
			continue
		}
		if len(last)+len(fed) > cap(last) {
			batches = append(batches, last)
			last = make([]Frame, 0, max(len(fed), min(2*cap(last), batchFrames)))
		}
		last = append(last, fed...)
	}

	// If the frames are complete only at the end, as those of a unary body, they need not be copied.
	frames := s.Close()
	if len(batches)+len(last) > 0 {
		frames = slices.Concat(append(batches, last, frames)...)
	}
	// An unframed body is complete only after everything was read, but its frame belongs to an earlier position.
	slices.SortStableFunc(frames, func(a, b Frame) int {
		switch {
		case a.at < b.at:
			return -1
		case a.at > b.at:
			return 1
		}
		return 0
	})

	code, message := s.Status()
	ex := &Exchange{
		Exchange: *rec, Call: s.Call(), Code: code, Message: message,
		Frames: frames, Err: errors.Join(s.err(), err), Profile: o.Profile, Split: o.Split,
	}
	if !o.NoChoices {
		ex.LoadChoices(ctx, src)
	}
	return ex, err
}

// Frame returns the frame with number seq of a direction, or nil.
func (ex *Exchange) Frame(dir captures.Direction, seq int) *Frame {
	for i := range ex.Frames {
		if f := &ex.Frames[i]; f.Dir == dir && f.Seq == seq {
			return f
		}
	}
	return nil
}

// CodecOf returns the codec of a frame. It is the codec of the exchange, except for exchanges without HTTP,
// whose messages may differ in codec.
func (ex *Exchange) CodecOf(f *Frame) string {
	switch {
	case ex.Transport == captures.HTTP:
		return ex.Codec
	case f.Tree != nil:
		return "proto"
	case isJSONDocument(f.Data):
		return "json"
	}
	return ""
}

// Chunk returns the sequence number of the capture's chunk that completed the frame. Frames in the order of these numbers
// are in the order in which their last bytes were recorded.
func (f *Frame) Chunk() int64 { return f.at }

// WithoutControl returns frames without a WebSocket's control frames.
func WithoutControl(frames []Frame) []Frame {
	if !slices.ContainsFunc(frames, func(f Frame) bool { return isControlOpcode(f.Opcode) }) {
		return frames
	}
	return slices.DeleteFunc(slices.Clone(frames), func(f Frame) bool { return isControlOpcode(f.Opcode) })
}

// IsMessage reports whether f is a whole, sound message. The end of a stream and the body of an HTTP error are
// not messages.
func (ex *Exchange) IsMessage(f *Frame) bool {
	return !ex.IsControl(f) && !f.Partial && f.Err == nil
}

// IsControl reports whether f contains no message: the end of a stream, a trailer frame, the body of an HTTP
// error, or a control frame of a WebSocket.
func (ex *Exchange) IsControl(f *Frame) bool {
	return f.End != nil || isControlOpcode(f.Opcode) || f.Flags&(envelope.EndStream|envelope.Trailer) != 0 ||
		!f.Framed && f.Dir == captures.Down && ex.Status >= 400
}
