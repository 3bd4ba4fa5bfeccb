package decode

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"unwire/captures"
	"unwire/decode/envelope"
	"unwire/decode/nested"
	"unwire/decode/wire"
)

// maxErrors is the maximum number of errors that a Stream keeps. A broken body can have one for each frame.
const maxErrors = 20

const (
	// defaultMaxFrames and the constants below are the defaults of Options.
	defaultMaxFrames = 200_000
	defaultMaxTotal  = 128 << 20
	defaultMaxNodes  = 1_000_000
	defaultMaxFrame  = 64 << 20

	// keptOfTooLarge is the number of bytes that are kept of a frame that exceeds a limit: 64 KiB.
	keptOfTooLarge = 64 << 10

	// keptNodes is the size of a scratch tree, in nodes, above which its memory is not reused for the next tree.
	keptNodes = 10_000

	// slabNodes is the maximum number of nodes that small trees share in one allocation.
	slabNodes = 1024
)

// Errors for exchanges that exceed a limit.
var (
	errTotal = errors.New("the exchange decompresses to more bytes than the limit")
	errNodes = errors.New("the exchange has more fields than the limit")
)

// A Stream decodes an exchange while it is being recorded.
//
// Limits: it buffers the incomplete frame of each direction, but no complete frames.
type Stream struct {
	// ex is the exchange's record as known so far.
	ex captures.Exchange

	// call is the protocol, codec and method as known so far.
	call Call

	// o are the options of decoding, with defaults filled in.
	o Options

	// dirs are the decoding states of the two directions.
	dirs [2]direction

	// end is the server's status at the end of the body, or nil.
	end *envelope.End

	// errs are the first errors of decoding.
	errs []error

	// more is the number of further errors that were dropped.
	more int

	// inflated is the size of all decompressed frames in bytes.
	inflated int64

	// nodes is the number of field nodes in all frames.
	nodes int

	// full means that the limit MaxFrames is reached.
	full bool

	// find detects encoded data in fields, such as messages in base64.
	find nested.Finder

	// conn is the decoding state of an exchange without HTTP.
	conn connectionState

	// scratch is the tree into which every frame is parsed first.
	scratch wire.Tree

	// slab is memory that the nodes of small frames share.
	slab []wire.Node

	// onFrame, if set, is called for each frame; the frame and its tree are reused
	// afterwards. Without it, frames are returned.
	onFrame func(*Frame)

	// one is the memory of the frame that is passed to onFrame.
	one Frame
}

// A direction is the decoding state of one direction of an exchange.
type direction struct {
	// dec splits the body into frames; nil before the first byte.
	dec *envelope.Decoder

	// codec is the encoding of messages in the body, such as "proto" or "json".
	codec string

	// unary means that the body is a single message, which may be empty.
	unary bool

	// seq is the number of the next frame of the direction, from 0.
	seq int

	// hasEnvelope means that one of the body's frames was in an envelope.
	hasEnvelope bool

	// at is the sequence number of the last chunk that was processed.
	at int64

	// t is the time of the last chunk that was processed, since the beginning of the exchange.
	t time.Duration

	// bytes is the number of body bytes processed so far.
	bytes int64

	// done means that the body has ended.
	done bool

	// parts collects the fragments of the current WebSocket message, if the exchange is a WebSocket.
	parts messageParts

	// splitter divides a byte stream without HTTP into messages, if the user selected a format for that.
	splitter splitter
}

// Bounded returns o with every unset limit replaced by its default.
func (o Options) Bounded() Options {
	if o.MaxFrames <= 0 {
		o.MaxFrames = defaultMaxFrames
	}
	if o.MaxTotal <= 0 {
		o.MaxTotal = defaultMaxTotal
	}
	if o.MaxNodes <= 0 {
		o.MaxNodes = defaultMaxNodes
	}
	if o.MaxFrame <= 0 {
		o.MaxFrame = defaultMaxFrame
	}
	return o
}

// NewStream returns a Stream for an exchange. At least the request's headers must be known.
func NewStream(ex *captures.Exchange, o Options) *Stream {
	s := &Stream{ex: *ex, call: Classify(ex), o: o.Bounded()}
	s.dirs[captures.Up].at, s.dirs[captures.Down].at = -1, -1
	return s
}

// Update replaces the record of the exchange. It must be called before the first chunk of the response, when the
// response's headers are known, and before Close.
func (s *Stream) Update(ex *captures.Exchange) { s.ex, s.call = *ex, Classify(ex) }

// Call returns the classification by the headers known so far. Without HTTP, the codec is that of the messages
// so far.
func (s *Stream) Call() Call {
	call := s.call
	if s.ex.Transport != captures.HTTP {
		call.Codec = s.conn.codec
	}
	return call
}

// feedBytes is the maximum number of bytes of a chunk that are split into frames at a time. Recorded chunks are
// usually smaller.
const feedBytes = 1 << 20

// Feed processes the next chunk and returns the frames that it completes.
//
// Shape: frames may alias the chunk. An unframed body is complete after content-length bytes, or at Close if the
// length is unknown.
func (s *Stream) Feed(c captures.Chunk) []Frame {
	d := &s.dirs[c.Dir]
	if d.done {
		return nil
	}
	if s.ex.Transport != captures.HTTP {
		return s.feedConnection(c)
	}
	s.openDecoder(c.Dir)
	d.at, d.t = c.Seq, c.T
	d.bytes += int64(len(c.Data))
	var out []Frame
	// A chunk of 64 MiB may contain 13 million empty frames. Processing it in parts, and stopping at MaxFrames,
	// bounds the memory.
	for rest := c.Data; len(rest) > 0 && !s.full; {
		part := rest[:min(len(rest), feedBytes)]
		rest = rest[len(part):]
		frames, err := d.dec.Feed(part)
		s.recordFault(c.Dir, err)
		out = s.finish(out, c.Dir, frames)
	}

	if d.unary && d.bytes > 0 && d.bytes == s.contentLength(c.Dir) {
		out = append(out, s.closeDirection(c.Dir)...)
	}
	return out
}

// Close ends both directions, and returns their incomplete frames.
func (s *Stream) Close() []Frame {
	if s.ex.Transport != captures.HTTP {
		return s.closeConnection()
	}
	var query, down []Frame
	if s.call.Protocol == ConnectGet {
		query = s.queryFrame()
	}
	up := s.closeDirection(captures.Up)
	if s.ex.Status != 0 || s.dirs[captures.Down].bytes > 0 {
		down = s.closeDirection(captures.Down)
	}
	return slices.Concat(query, up, down)
}

// closeDirection ends the body of one direction, and returns its incomplete frame.
func (s *Stream) closeDirection(dir captures.Direction) []Frame {
	d := &s.dirs[dir]
	if d.done {
		return nil
	}
	s.openDecoder(dir)
	d.done = true
	frames, err := d.dec.Close()
	s.recordFault(dir, err)
	out := s.finish(nil, dir, frames)
	// An empty body of a unary call is an empty message.
	if d.unary && d.seq == 0 && s.call.Protocol == ConnectUnary && (dir == captures.Up || s.ex.Outcome == captures.Complete) {
		if d.at < 0 && dir == captures.Down {
			d.at, d.t = s.dirs[captures.Up].at, s.ex.Duration
		}
		out = s.finish(out, dir, []envelope.Frame{{Raw: []byte{}, Data: []byte{}}})
	}
	return out
}

// openDecoder creates the decoder that splits the body of a direction into frames, once its headers are known.
func (s *Stream) openDecoder(dir captures.Direction) {
	d := &s.dirs[dir]
	if d.dec != nil {
		return
	}
	headers := s.ex.RequestHeaders
	if dir == captures.Down {
		headers = s.ex.ResponseHeaders
	}

	// A missing content type means that of the call.
	m := mediaOf(headers.Get("content-type"))
	if m.name == "" && (dir == captures.Up || s.ex.Status == 0 || s.ex.Status == http.StatusOK) {
		m.protocol, m.codec = s.call.Protocol, s.call.Codec
	}
	eo := envelope.Options{MaxFrame: s.o.MaxFrame, MaxInflated: s.o.MaxInflated, Reuse: true}
	d.codec = m.codec

	// Each protocol names the compression of frames in a header of its own.
	switch m.protocol {
	case ConnectStream:
		eo.Framed, eo.Encoding = true, headers.Get("connect-content-encoding")
	case GRPC, GRPCWeb:
		eo.Framed, eo.Encoding = true, headers.Get("grpc-encoding")
	case GRPCWebText:
		eo.Base64, eo.Encoding = true, headers.Get("grpc-encoding")
	case SSE:
		if dir == captures.Up {
			d.unary = true
			break
		}
		eo.Events, eo.Encoding = true, headers.Get("connect-content-encoding")
		d.codec = s.call.Codec
	case awsEvents:
		eo.AWSEvents = true
	case ndjson:
		// The request of such a call is one message.
		if dir == captures.Down {
			eo.Values = envelope.ValuesDeclared
			break
		}
		d.unary = true
		eo.Encoding = headers.Get("content-encoding")
	default:
		d.unary = true
		eo.Encoding = headers.Get("content-encoding")
		if dir == captures.Down && s.call.Protocol == HTTP && s.ex.Status < http.StatusBadRequest {
			eo.Values, eo.Lengths = possibleValues(m.codec)
			eo.Sized = s.contentLength(dir) >= 0
		}
	}
	if !d.unary {
		eo.Whole = headers.Get("content-encoding")
	}
	d.dec = envelope.NewDecoder(eo)
}

// possibleValues returns whether the body of a response with that codec may consist of several JSON values, and
// whether binary lengths may precede them. Headers often do not declare either.
func possibleValues(codec string) (values envelope.Values, lengths bool) {
	switch {
	case codec == "json" || strings.HasSuffix(codec, "+json"):
		return envelope.ValuesPossible, false
	case codec == "" || codec == "octet-stream":
		return envelope.ValuesPossible, true
	}
	return envelope.NoValues, false
}

// contentLength returns the value of the content-length header of a body in bytes, or -1 without one.
func (s *Stream) contentLength(dir captures.Direction) int64 {
	headers := s.ex.RequestHeaders
	if dir == captures.Down {
		headers = s.ex.ResponseHeaders
	}
	n, err := strconv.ParseInt(headers.Get("content-length"), 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// finish delivers the frames that the envelope decoder returned. It appends them to out unless onFrame is set.
func (s *Stream) finish(out []Frame, dir captures.Direction, in []envelope.Frame) []Frame {
	if s.onFrame == nil {
		// Frames are large, so reserve memory for all of them instead of moving them while the list grows.
		out = slices.Grow(out, min(len(in), s.o.MaxFrames-s.dirs[captures.Up].seq-s.dirs[captures.Down].seq))
	}
	for i := range in {
		out = s.deliver(out, dir, Frame{Frame: in[i]})
		if s.full {
			break
		}
	}
	return out
}

// deliver completes and interprets a frame, then calls onFrame with it or appends it to out. f has the envelope
// and the opcode only.
func (s *Stream) deliver(out []Frame, dir captures.Direction, f Frame) []Frame {
	d := &s.dirs[dir]
	if s.dirs[captures.Up].seq+s.dirs[captures.Down].seq >= s.o.MaxFrames {
		if !s.full {
			s.recordError(fmt.Errorf("%s frame %d: the exchange has more than %d frames; the rest is not decoded", dir.Sender(), d.seq, s.o.MaxFrames))
		}
		s.full = true
		return out
	}
	one := &s.one
	if s.onFrame == nil {
		out = append(out, Frame{})
		one = &out[len(out)-1]
	}
	*one = f
	one.Dir, one.Seq, one.T, one.at = dir, d.seq, d.t, d.at
	d.seq++
	d.hasEnvelope = d.hasEnvelope || one.Framed

	// From here on, the frame's content is examined.
	s.enforceTotalLimit(one)
	if s.ex.Transport == captures.HTTP {
		s.interpret(one, d)
	} else {
		s.interpretMessage(one)
	}
	if one.Err != nil {
		s.recordError(fmt.Errorf("%s frame %d: %w", dir.Sender(), one.Seq, one.Err))
	}
	if s.onFrame != nil {
		s.onFrame(one)
	}
	return out
}

// enforceTotalLimit truncates f.Data once the exchange exceeds Options.MaxTotal. The limit per frame is not
// enough, because many frames can each inflate to just below it.
func (s *Stream) enforceTotalLimit(f *Frame) {
	if f.Encoding == "" {
		return
	}
	if s.inflated+int64(len(f.Data)) > s.o.MaxTotal && len(f.Data) > keptOfTooLarge {
		f.Data = bytes.Clone(f.Data[:keptOfTooLarge])
		if f.Err == nil {
			f.Err = fmt.Errorf("frame at offset %#x: %w of %d bytes", f.Offset, errTotal, s.o.MaxTotal)
		}
	}
	s.inflated += int64(len(f.Data))
}

// parse parses a frame's data. All trees of the exchange share the limit MaxNodes.
func (s *Stream) parse(data []byte) *wire.Tree {
	o := s.o.Wire
	if left := s.o.MaxNodes - s.nodes; o.MaxNodes <= 0 || o.MaxNodes > left {
		o.MaxNodes = left
	}
	s.scratch.Reset(data, o)
	if s.onFrame != nil {
		return &s.scratch
	}
	// The caller keeps the tree. A large one gets the memory of the scratch tree, of a small one the nodes are copied.
	nodes, faults := s.scratch.Nodes, s.scratch.Faults
	s.nodes += len(nodes)
	if len(nodes) > keptNodes {
		s.scratch = wire.Tree{}
	} else {
		nodes = s.copyNodes(nodes)
	}
	return &wire.Tree{Data: data, Nodes: nodes, Faults: faults}
}

// copyNodes copies nodes to memory that is not reused. Small trees share a slab, whose size grows with the
// exchange, to save allocations.
func (s *Stream) copyNodes(nodes []wire.Node) []wire.Node {
	n := len(nodes)
	if n > slabNodes/8 {
		return slices.Clone(nodes)
	}
	if len(s.slab)+n > cap(s.slab) {
		s.slab = make([]wire.Node, 0, min(max(2*cap(s.slab), 2*n), slabNodes))
	}
	from := len(s.slab)
	s.slab = append(s.slab, nodes...)
	return s.slab[from : from+n : from+n]
}

// interpret determines whether a frame is a status or a message, and parses it.
func (s *Stream) interpret(f *Frame, d *direction) {
	end, err := s.endOf(f, d)
	if end != nil {
		f.End = end
		if f.Dir == captures.Down && !f.Partial {
			s.end = f.End
		}
		if f.Err == nil {
			f.Err = err
		}
		return
	}
	if s.o.NoTrees {
		return
	}

	// Every tree counts towards MaxNodes.
	if s.nodes >= s.o.MaxNodes {
		if f.Err == nil {
			f.Err = fmt.Errorf("frame at offset %#x: %w of %d", f.Offset, errNodes, s.o.MaxNodes)
		}
		return
	}
	if s.treeFor(f, d) && f.Err == nil {
		f.Err = f.Tree.Err()
	}
	if f.Tree != nil && !s.o.NoInner {
		f.Inner = s.inner(f)
	}
}

// endOf returns the status in frame f (end-of-stream frame, trailer or error body), or nil if f is not the end of a
// call.
func (s *Stream) endOf(f *Frame, d *direction) (*envelope.End, error) {
	switch {
	case f.Framed && f.Flags&envelope.EndStream != 0:
		return envelope.ParseEnd(f.Data)
	case f.Framed && f.Flags&envelope.Trailer != 0:
		return trailerEnd(f.Data)
	case f.Event == "end" && !f.Framed:
		return eventEnd(f.Data), nil
	case f.Dir == captures.Down && d.unary && s.ex.Status >= 400 && (s.call.Protocol.isRPC() || s.call.Protocol == SSE):
		// A Connect unary error is JSON whatever the codec. Other error bodies have no status.
		if e, err := envelope.ParseError(f.Data); e != nil {
			return &envelope.End{Error: e}, err
		}
	}
	return nil, nil
}

// treeFor parses the frame's data and sets f.Tree if it is protobuf. It returns true if the headers declare
// protobuf, so that a malformed message is an error.
func (s *Stream) treeFor(f *Frame, d *direction) bool {
	if d.codec == "proto" && (f.Err == nil || f.Partial || f.Encoding != "") {
		f.Tree = s.parse(f.Data)
		// Events may carry other data in addition to messages.
		if f.Event != "" && f.Tree.Err() != nil {
			f.Tree = nil
		}
		return f.Tree != nil
	}

	// The headers are silent: accept data that parses completely and is not text.
	switch d.codec {
	case "", "octet-stream", "grpc", "binary":
		if t := s.parse(f.Data); len(f.Data) > 0 && t.Err() == nil && !IsText(f.Data) {
			f.Tree = t
		}
	}
	return false
}

// eventEnd parses an event named "end": empty, or with a Connect end-of-stream object. It returns nil for
// anything else.
func eventEnd(data []byte) *envelope.End {
	if len(bytes.TrimSpace(data)) == 0 {
		return &envelope.End{}
	}
	end, err := envelope.ParseEnd(data)
	if err != nil {
		return nil
	}
	return end
}

// trailerEnd parses the status in a gRPC-Web trailer frame.
func trailerEnd(data []byte) (*envelope.End, error) {
	fields, err := envelope.ParseTrailer(data)
	end, serr := envelope.ParseStatus(func(name string) string {
		for _, f := range fields {
			if f.Name == name {
				return f.Value
			}
		}
		return ""
	})
	if end == nil {
		end = &envelope.End{}
		serr = errors.New("the trailer frame has no grpc-status")
	}
	end.Metadata = map[string][]string{}
	for _, f := range fields {
		if !strings.HasPrefix(f.Name, "grpc-") {
			end.Metadata[f.Name] = append(end.Metadata[f.Name], f.Value)
		}
	}
	return end, errors.Join(err, serr)
}

// queryFrame returns the frame for the message in the URL of a Connect GET request.
func (s *Stream) queryFrame() []Frame {
	q := queryOf(s.ex.URL)
	d := &s.dirs[captures.Up]
	d.codec, d.done = q.Get("encoding"), true
	raw := []byte(q.Get("message"))
	if q.Get("base64") == "1" {
		b, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(string(raw), "="))
		if err != nil {
			s.recordFault(captures.Up, fmt.Errorf("the message in the URL's query is not base64: %w", err))
		}
		raw = b
	}

	// The decoder undoes the compression that the query names.
	dec := envelope.NewDecoder(envelope.Options{Encoding: q.Get("compression"), MaxFrame: s.o.MaxFrame, MaxInflated: s.o.MaxInflated})
	_, err := dec.Feed(raw)
	s.recordFault(captures.Up, err)
	frames, err := dec.Close()
	s.recordFault(captures.Up, err)
	if len(frames) == 0 {
		frames = []envelope.Frame{{Raw: []byte{}, Data: []byte{}}}
	}
	return s.finish(nil, captures.Up, frames)
}

// recordFault records an error in splitting the body of a direction into frames; nil is ignored.
func (s *Stream) recordFault(dir captures.Direction, err error) {
	// Errors within a frame are recorded with that frame.
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, envelope.ErrTooLarge) {
		s.recordError(fmt.Errorf("%s: %w", dir, err))
	}
}

// recordError records an error of decoding; at most maxErrors are kept.
func (s *Stream) recordError(err error) {
	if len(s.errs) < maxErrors {
		s.errs = append(s.errs, err)
	} else {
		s.more++
	}
}

// err returns everything that could not be decoded so far, with direction and frame, or nil.
func (s *Stream) err() error {
	err := errors.Join(s.errs...)
	if err == nil {
		return nil
	}
	if s.more > 0 {
		return fmt.Errorf("decode: exchange %d: %w\nand %d more errors", s.ex.ID, err, s.more)
	}
	return fmt.Errorf("decode: exchange %d: %w", s.ex.ID, err)
}
