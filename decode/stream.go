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

// maxErrors is how many errors a Stream keeps; a broken body can have one a frame.
const maxErrors = 20

const (
	defaultMaxFrames = 1_000_000
	defaultMaxTotal  = 128 << 20
	defaultMaxNodes  = 1_000_000
	defaultMaxFrame  = 64 << 20
	keptOfTooLarge   = 64 << 10 // of a frame for which the exchange has no room
	keptNodes        = 10_000   // of memory for trees that is used again
	slabNodes        = 1024     // that small trees are given together
)

// Wrapped where an exchange is more than is held at once.
var (
	errTotal = errors.New("the exchange inflates past the limit")
	errNodes = errors.New("the exchange has more fields than the limit")
)

// A Stream decodes an exchange while it is going on.
//
// Limits: it holds what is incomplete of each direction, no frames.
type Stream struct {
	ex   captures.Exchange
	call Call
	o    Options
	dirs [2]direction
	end  *envelope.End // what the server said at the end, in the body
	errs []error
	more int // errors that were not kept

	inflated int64 // bytes of frames that were compressed
	nodes    int   // of all trees
	full     bool
	find     nested.Finder
	conn     connectionState
	scratch  wire.Tree
	slab     []wire.Node // of trees that are kept

	// onFrame, if set, is called for each frame; the frame and its tree are reused
	// afterwards. Without it, frames are returned.
	onFrame func(*Frame)

	one Frame // that is passed
}

// A direction is one body.
type direction struct {
	dec   *envelope.Decoder
	codec string
	unary bool // one message, also an empty one
	seq   int
	frame bool // an envelope was seen
	at    int64
	t     time.Duration
	bytes int64
	done  bool

	// Of an exchange that has no HTTP in it.
	parts    messageParts
	splitter splitter
}

// Bounded returns o with the defaults in place of bounds that are not set.
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

// NewStream returns a Stream for an exchange of which at least the request's
// headers are known.
func NewStream(ex *captures.Exchange, o Options) *Stream {
	s := &Stream{ex: *ex, call: Classify(ex), o: o.Bounded()}
	s.dirs[captures.Up].at, s.dirs[captures.Down].at = -1, -1
	return s
}

// Update tells the Stream what has become known of the exchange since. It has
// to be called before the first chunk of the response is fed, and before Close.
func (s *Stream) Update(ex *captures.Exchange) { s.ex, s.call = *ex, Classify(ex) }

// Call says what the exchange is, as far as its headers are known; the codec of one without
// HTTP is that of its messages so far.
func (s *Stream) Call() Call {
	call := s.call
	if s.ex.Transport != captures.HTTP {
		call.Codec = s.conn.codec
	}
	return call
}

// feedBytes is how many bytes of a chunk are split into frames at a time. Chunks as
// they are recorded are smaller.
const feedBytes = 1 << 20

// Feed takes the next chunk and returns the frames it completes.
//
// Shape: frames may alias the chunk. A body that is not framed is complete at
// its content-length, if it has one, else at Close.
func (s *Stream) Feed(c captures.Chunk) []Frame {
	d := &s.dirs[c.Dir]
	if d.done {
		return nil
	}
	if s.ex.Transport != captures.HTTP {
		return s.feedConnection(c)
	}
	s.open(c.Dir)
	d.at, d.t = c.Seq, c.T
	d.bytes += int64(len(c.Data))
	var out []Frame
	// A chunk of 64 MiB can hold 13 million empty frames: they are not made all at
	// once, nor those past MaxFrames.
	for rest := c.Data; len(rest) > 0 && !s.full; {
		part := rest[:min(len(rest), feedBytes)]
		rest = rest[len(part):]
		frames, err := d.dec.Feed(part)
		s.fault(c.Dir, err)
		out = append(out, s.finish(c.Dir, frames)...)
	}
	if d.unary && d.bytes > 0 && d.bytes == s.length(c.Dir) {
		out = append(out, s.shut(c.Dir)...)
	}
	return out
}

// Close ends both bodies and returns what was still open.
func (s *Stream) Close() []Frame {
	if s.ex.Transport != captures.HTTP {
		return s.closeConnection()
	}
	var out []Frame
	if s.call.Protocol == ConnectGet {
		out = append(out, s.query()...)
	}
	out = append(out, s.shut(captures.Up)...)
	if s.ex.Status != 0 || s.dirs[captures.Down].bytes > 0 {
		out = append(out, s.shut(captures.Down)...)
	}
	return out
}

// shut ends one body.
func (s *Stream) shut(dir captures.Direction) []Frame {
	d := &s.dirs[dir]
	if d.done {
		return nil
	}
	s.open(dir)
	d.done = true
	frames, err := d.dec.Close()
	s.fault(dir, err)
	out := s.finish(dir, frames)
	// An empty message has no bytes, but it is one.
	if d.unary && d.seq == 0 && s.call.Protocol == ConnectUnary && (dir == captures.Up || s.ex.Outcome == captures.Complete) {
		if d.at < 0 && dir == captures.Down {
			d.at, d.t = s.dirs[captures.Up].at, s.ex.Duration
		}
		out = append(out, s.finish(dir, []envelope.Frame{{Raw: []byte{}, Data: []byte{}}})...)
	}
	return out
}

// open makes the decoder of a direction once its headers are known.
func (s *Stream) open(dir captures.Direction) {
	d := &s.dirs[dir]
	if d.dec != nil {
		return
	}
	headers := s.ex.RequestHeaders
	if dir == captures.Down {
		headers = s.ex.ResponseHeaders
	}
	m := mediaOf(headers.Get("content-type"))
	if m.name == "" && (dir == captures.Up || s.ex.Status == 0 || s.ex.Status == http.StatusOK) {
		m.protocol, m.codec = s.call.Protocol, s.call.Codec
	}
	eo := envelope.Options{MaxFrame: s.o.MaxFrame, MaxInflated: s.o.MaxInflated, Reuse: s.onFrame != nil}
	d.codec = m.codec
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
	default:
		d.unary = true
		eo.Encoding = headers.Get("content-encoding")
	}
	if !d.unary {
		eo.Whole = headers.Get("content-encoding")
	}
	d.dec = envelope.NewDecoder(eo)
}

// length is the content-length of a body, or -1.
func (s *Stream) length(dir captures.Direction) int64 {
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

// finish makes frames of what the envelope decoder returned, and passes them on or
// returns them.
func (s *Stream) finish(dir captures.Direction, in []envelope.Frame) []Frame {
	var out []Frame
	for i := range in {
		out = s.deliver(out, dir, Frame{Frame: in[i]})
		if s.full {
			break
		}
	}
	return out
}

// deliver interprets a frame of a direction, and passes it on or appends it to out. Of f
// there is what is in the envelope, and the opcode.
func (s *Stream) deliver(out []Frame, dir captures.Direction, f Frame) []Frame {
	d := &s.dirs[dir]
	if s.dirs[captures.Up].seq+s.dirs[captures.Down].seq >= s.o.MaxFrames {
		if !s.full {
			s.recordError(fmt.Errorf("%s frame %d: more than %d frames, the rest is left out", dir, d.seq, s.o.MaxFrames))
		}
		s.full = true
		return out
	}
	s.one = f
	one := &s.one
	one.Dir, one.Seq, one.T, one.at = dir, d.seq, d.t, d.at
	d.seq++
	d.frame = d.frame || one.Framed
	s.enforceTotalLimit(one)
	if s.ex.Transport == captures.HTTP {
		s.interpret(one, d)
	} else {
		s.interpretMessage(one)
	}
	if one.Err != nil {
		s.recordError(fmt.Errorf("%s frame %d: %w", dir, one.Seq, one.Err))
	}
	if s.onFrame == nil {
		return append(out, *one)
	}
	s.onFrame(one)
	return out
}

// enforceTotalLimit keeps the beginning alone of a compressed frame for which the exchange
// has no room left: many frames can each inflate to just below their limit.
func (s *Stream) enforceTotalLimit(f *Frame) {
	if f.Encoding == "" {
		return
	}
	if s.inflated+int64(len(f.Data)) > s.o.MaxTotal && len(f.Data) > keptOfTooLarge {
		f.Data = bytes.Clone(f.Data[:keptOfTooLarge])
		if f.Err == nil {
			f.Err = fmt.Errorf("frame at %#x: %w of %d bytes", f.Offset, errTotal, s.o.MaxTotal)
		}
	}
	s.inflated += int64(len(f.Data))
}

// parse parses a frame's data; the exchange's trees share their limit.
func (s *Stream) parse(data []byte) *wire.Tree {
	o := s.o.Wire
	if left := s.o.MaxNodes - s.nodes; o.MaxNodes <= 0 || o.MaxNodes > left {
		o.MaxNodes = left
	}
	s.scratch.Reset(data, o)
	if s.onFrame != nil {
		return &s.scratch
	}
	// Trees are kept, so they take no more room than their nodes.
	t := &wire.Tree{Data: data, Nodes: s.keep(s.scratch.Nodes)}
	if s.nodes += len(t.Nodes); len(t.Nodes) > keptNodes {
		s.scratch = wire.Tree{}
	}
	return t
}

// keep copies nodes. Those of small trees share a slab, which grows with the exchange.
func (s *Stream) keep(nodes []wire.Node) []wire.Node {
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

// interpret finds out what a frame's data is.
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
	if s.nodes >= s.o.MaxNodes {
		if f.Err == nil {
			f.Err = fmt.Errorf("frame at %#x: %w of %d", f.Offset, errNodes, s.o.MaxNodes)
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

// endOf is how the call ended, if the frame tells; else nil.
func (s *Stream) endOf(f *Frame, d *direction) (*envelope.End, error) {
	switch {
	case f.Framed && f.Flags&envelope.EndStream != 0:
		return envelope.ParseEnd(f.Data)
	case f.Framed && f.Flags&envelope.Trailer != 0:
		return trailerEnd(f.Data)
	case f.Event == "end" && !f.Framed:
		return eventEnd(f.Data), nil
	case f.Dir == captures.Down && d.unary && s.ex.Status >= 400 && s.call.Protocol != HTTP:
		// A Connect unary error is JSON whatever the codec; any other error
		// body may be anything, and says nothing then.
		if e, err := envelope.ParseError(f.Data); e != nil {
			return &envelope.End{Error: e}, err
		}
	}
	return nil, nil
}

// treeFor parses the data if it is protobuf, and reports whether it ought to be.
func (s *Stream) treeFor(f *Frame, d *direction) bool {
	if d.codec == "proto" && (f.Err == nil || f.Partial || f.Encoding != "") {
		f.Tree = s.parse(f.Data)
		// Events may carry other things beside messages.
		if f.Event != "" && f.Tree.Err() != nil {
			f.Tree = nil
		}
		return f.Tree != nil
	}
	switch d.codec {
	case "", "octet-stream", "grpc", "binary":
		if t := s.parse(f.Data); len(f.Data) > 0 && t.Err() == nil && !IsText(f.Data) {
			f.Tree = t
		}
	}
	return false
}

// eventEnd reads an event that is named "end": nothing, or what a Connect
// end-of-stream says. It is nil for anything else.
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

// trailerEnd reads the status of a gRPC-Web trailer frame.
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
		serr = errors.New("envelope: trailer without grpc-status")
	}
	end.Metadata = map[string][]string{}
	for _, f := range fields {
		if !strings.HasPrefix(f.Name, "grpc-") {
			end.Metadata[f.Name] = append(end.Metadata[f.Name], f.Value)
		}
	}
	return end, errors.Join(err, serr)
}

// query makes the frame of the message in a Connect GET's URL.
func (s *Stream) query() []Frame {
	q := queryOf(s.ex.URL)
	d := &s.dirs[captures.Up]
	d.codec, d.done = q.Get("encoding"), true
	raw := []byte(q.Get("message"))
	if q.Get("base64") == "1" {
		b, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(string(raw), "="))
		if err != nil {
			s.fault(captures.Up, fmt.Errorf("envelope: message of the query: %w", err))
		}
		raw = b
	}
	dec := envelope.NewDecoder(envelope.Options{Encoding: q.Get("compression"), MaxFrame: s.o.MaxFrame, MaxInflated: s.o.MaxInflated})
	_, err := dec.Feed(raw)
	s.fault(captures.Up, err)
	frames, err := dec.Close()
	s.fault(captures.Up, err)
	if len(frames) == 0 {
		frames = []envelope.Frame{{Raw: []byte{}, Data: []byte{}}}
	}
	return s.finish(captures.Up, frames)
}

func (s *Stream) fault(dir captures.Direction, err error) {
	// What is wrong within a frame is reported with the frame.
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, envelope.ErrTooLarge) {
		s.recordError(fmt.Errorf("%s: %w", dir, err))
	}
}

func (s *Stream) recordError(err error) {
	if len(s.errs) < maxErrors {
		s.errs = append(s.errs, err)
	} else {
		s.more++
	}
}

// err returns what could not be decoded so far, each with its direction and
// frame, or nil.
func (s *Stream) err() error {
	err := errors.Join(s.errs...)
	if err == nil {
		return nil
	}
	if s.more > 0 {
		return fmt.Errorf("decode: exchange %d: %w\nand %d more", s.ex.ID, err, s.more)
	}
	return fmt.Errorf("decode: exchange %d: %w", s.ex.ID, err)
}
