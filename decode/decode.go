// Package decode turns a capture's exchanges into frames, trees and annotations. It is
// the glue between captures, envelope and wire.
//
// Decode reads one exchange whole, EachFrame a frame at a time. A Stream decodes while an
// exchange goes on, and Watch does so for all exchanges that are being recorded. Each
// first classifies the exchange by its headers; the status is how the call ended. The
// messages of a WebSocket are frames, with those that control it, or several frames if they
// hold several envelopes; of a connection that has no HTTP in it each chunk is one, or each
// message if Options.Split says how these are delimited.
//
// An inner message travels inside a string or bytes field of a frame, as text. A carried
// message is one of another call, which came in pieces (package conversation).
//
// A View says by what fields are read: by what a user chose, by a declared field of a
// message type, or by a Pool, the evidence of frames of the same method. It makes
// annotated fields (package field), also of a field that is cut off at the end of the
// bytes. A Line is a frame with its fields as the JSON contract has it.
//
// The package finds no conversations and no secrets, and compares nothing: the packages
// below it do. It knows definitions only as descriptors.
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

// A Protocol names how an exchange carries its messages, in the contract's words. That of an
// exchange without HTTP is its transport.
type Protocol string

const (
	ConnectUnary  Protocol = "connect-unary"
	ConnectGet    Protocol = "connect-get"
	ConnectStream Protocol = "connect-stream"
	GRPC          Protocol = "grpc"
	GRPCWeb       Protocol = "grpc-web"
	GRPCWebText   Protocol = "grpc-web-text"
	SSE           Protocol = "sse"
	HTTP          Protocol = "http" // none of the above
)

// A Call says what an exchange is, from its headers alone.
type Call struct {
	Protocol Protocol
	Codec    string // "proto", "json", or the media subtype
	Service  string // "pkg.v1.Service"; "" for plain HTTP
	RPC      string // "Method"
}

// A Frame is one message of an exchange as it passed, decoded as far as it goes.
type Frame struct {
	Dir  captures.Direction
	Seq  int           // from 0, per direction
	T    time.Duration // when its last byte passed, since the exchange's start
	Tree *wire.Tree    // nil where the data is not protobuf

	// Set on a Connect end-of-stream frame, a gRPC-Web trailer and a unary error.
	End *envelope.End

	Inner []Inner // messages found inside fields, in hex, base64 or gzip
	envelope.Frame

	// Opcode is set in the frames of a WebSocket: each is a message or a control frame.
	// Of the flags there is OpCompressed.
	Opcode captures.Opcode
	Close  *Close // what a close frame says

	at int64 // sequence number of the chunk that completed it
}

// An Exchange is a captured exchange with its frames of both directions, in
// the order in which they were complete.
type Exchange struct {
	captures.Exchange
	Call
	Code    string // "ok", or the Connect/gRPC code's name; "" while unknown
	Message string // the error's message; "" if there is none
	Frames  []Frame
	Err     error // what could not be decoded; the frames before it are there

	// Profile is what is known of the service, by which it was decoded.
	Profile *profile.Profile

	// Split is Options.Split, by which it was decoded.
	Split Splitting

	// Choices are how somebody said that fields are read, by direction; a capture
	// remembers them for the method.
	Choices [2][]kind.Choice
}

// CallName is the service and the name of the RPC, or else the HTTP method and the URL.
func (ex *Exchange) CallName() string {
	if ex.Service != "" {
		return ex.Service + "/" + ex.RPC
	}
	return strings.TrimSpace(ex.Method + " " + ex.URL)
}

// Options bounds decoding. The zero value is the default.
type Options struct {
	// Profile is what is known of the service; nil: that of the source, if there is
	// one.
	Profile *profile.Profile

	NoTrees bool // frames only: neither trees nor what is inside them
	NoInner bool // trees, but not what is inside their fields

	// Bytes of a frame, or of a unary body; default 64 MiB.
	MaxFrame int64

	// Bytes of a frame after decompression; default 64 MiB.
	MaxInflated int64

	// Of an exchange; more are left out, and Err says so; default 1,000,000.
	MaxFrames int

	// Bytes of an exchange's frames after decompression; frames past it keep 64 KiB;
	// default 128 MiB.
	MaxTotal int64

	// Of an exchange's trees; frames past it have no tree; default 1,000,000.
	MaxNodes int

	// MaxNodes: what is left of the exchange's, by default.
	Wire wire.Options

	// Split divides the bytes of exchanges without HTTP into messages; by default a
	// message of a WebSocket is a frame, and so is each chunk of another connection.
	Split Splitting
}

// batchFrames is how many frames are put aside at a time while an exchange is read.
const batchFrames = 256

// Decode reads exchange id of src whole.
//
// Errors: only where src cannot be read, with what had been read by then, or
// nil if that is nothing. What cannot be decoded is in Exchange.Err.
func Decode(ctx context.Context, src captures.Source, id int64, o Options) (*Exchange, error) {
	rec, err := src.Exchange(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("decode: exchange %d: %w", id, err)
	}
	if o.Profile == nil {
		o.Profile = src.Profile()
	}
	s := NewStream(rec, o)
	var batches [][]Frame // frames are large: each is moved once
	var last []Frame
	for chunk, cerr := range src.Chunks(ctx, id, 0) {
		if cerr != nil {
			err = fmt.Errorf("decode: exchange %d: %w", id, cerr)
			break
		}
		fed := s.Feed(chunk)
		if len(last)+len(fed) > cap(last) {
			batches = append(batches, last)
			last = make([]Frame, 0, max(len(fed), min(2*cap(last), batchFrames)))
		}
		last = append(last, fed...)
	}
	frames := slices.Concat(append(batches, last, s.Close())...)
	// A body without frames is known to be complete only when all has been read.
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
	ex.LoadChoices(ctx, src)
	return ex, err
}

// Frame returns the frame of a direction with a sequence number, or nil.
func (ex *Exchange) Frame(dir captures.Direction, seq int) *Frame {
	for i := range ex.Frames {
		if f := &ex.Frames[i]; f.Dir == dir && f.Seq == seq {
			return f
		}
	}
	return nil
}

// CodecOf is the codec of a frame: that of the exchange, but for the messages of a
// WebSocket, each of which may have another.
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

// WithoutControl returns frames without the control frames of a WebSocket.
func WithoutControl(frames []Frame) []Frame {
	if !slices.ContainsFunc(frames, func(f Frame) bool { return isControlOpcode(f.Opcode) }) {
		return frames
	}
	return slices.DeleteFunc(slices.Clone(frames), func(f Frame) bool { return isControlOpcode(f.Opcode) })
}

// IsMessage reports whether f carries a whole message: neither an end of stream nor
// the page with which a proxy reports an error.
func (ex *Exchange) IsMessage(f *Frame) bool {
	return !ex.IsControl(f) && !f.Partial && f.Err == nil
}

// IsControl reports whether f is an end of stream, a trailer frame, the body of an HTTP
// error or a control frame of a WebSocket, and so carries no message.
func (ex *Exchange) IsControl(f *Frame) bool {
	return f.End != nil || isControlOpcode(f.Opcode) || f.Flags&(envelope.EndStream|envelope.Trailer) != 0 ||
		!f.Framed && f.Dir == captures.Down && ex.Status >= 400
}
