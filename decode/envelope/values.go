package envelope

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
)

// A valueReader splits a body into the JSON values that it consists of: one on each line, one after the other, the
// elements of an array that arrives in pieces, or values with a binary length before each.
//
// Shape: a body whose headers do not announce values is a unary body until it turns out to be a stream: a second
// value begins, an array's elements arrive one by one, or a length precedes the first value. An array that arrives
// at once stays one unary body, because services return lists in that form.
//
// Limits: it buffers the incomplete value, or the unary body, up to Options.MaxFrame.
type valueReader struct {
	// o are the options, with the limit on sizes.
	o Options

	// sure means that the body is certainly a stream of values and not a unary body.
	sure bool

	// buf has the received bytes that are not part of a returned frame.
	buf []byte

	// off is the offset in the body, in bytes, at which buf begins.
	off int64

	// scan is the index in buf up to which bytes were searched for the end of a value.
	scan int

	// scanner is the state of this search, such as the nesting of brackets at index scan.
	scanner valueScanner

	// ready are the complete values of a body that is not known to be a stream yet.
	ready []Frame

	// unary means that the body cannot be a stream any more, so it is only collected.
	unary bool

	// perChunk counts the values that ended in the current chunk.
	perChunk int

	// aligned is the number of chunks that ended between two elements of an array. An array whose chunks are
	// aligned is a stream.
	aligned int

	// torn is the number of chunks that completed at least one element of an array, but ended inside another.
	torn int

	// several means that one chunk completed several elements of an array.
	several bool

	// lengths parses the binary length before each value; nil if there are none.
	lengths lengthFormat

	// examined means that the beginning of the body was already searched for a binary length before the first
	// value.
	examined bool
}

// A lengthFormat parses a binary length at the beginning of p. n is the encoded length's own size in bytes, 0 if it
// is incomplete, and negative if it is malformed.
type lengthFormat func(p []byte) (length uint64, n int)

// lengthFormats are the binary formats of lengths before JSON values: 32 bits big-endian, 32 bits little-endian,
// and varint. Which one a body uses is recognised by the valid JSON value of that length.
var lengthFormats = [...]lengthFormat{
	func(p []byte) (uint64, int) {
		if len(p) < 4 {
			return 0, 0
		}
		return uint64(binary.BigEndian.Uint32(p)), 4
	},
	func(p []byte) (uint64, int) {
		if len(p) < 4 {
			return 0, 0
		}
		return uint64(binary.LittleEndian.Uint32(p)), 4
	},
	func(p []byte) (uint64, int) {
		length, n := protowire.ConsumeVarint(p)
		if n < 0 && len(p) < binary.MaxVarintLen32 {
			return 0, 0
		}
		return length, n
	},
}

// longestLength is the number of bytes that suffice to recognise a binary length: its maximum size and one byte of
// the value.
const longestLength = binary.MaxVarintLen32 + 1

// feed processes the next chunk and returns the frames that it completes.
func (r *valueReader) feed(p []byte) ([]Frame, error) {
	r.buf = append(r.buf, p...)
	if !r.examined && !r.findLengths(false) {
		return nil, nil
	}
	switch {
	case r.lengths != nil:
		return r.prefixed()
	case r.unary:
		return nil, nil
	}
	r.perChunk = 0
	r.split()
	r.judgeChunk()
	return r.taken(), nil
}

// findLengths searches the beginning of the body for a binary length and sets lengths. It returns false if more
// bytes are needed. last means that no more follow.
func (r *valueReader) findLengths(last bool) bool {
	if !r.o.Lengths || len(r.buf) > 0 && (r.buf[0] == '{' || r.buf[0] == '[') {
		r.examined = true
		return true
	}
	if len(r.buf) < longestLength && !last {
		return false
	}
	for _, format := range lengthFormats {
		length, n := format(r.buf)
		if n <= 0 || length < 2 || length > uint64(r.o.MaxFrame) || len(r.buf) <= n || r.buf[n] != '{' && r.buf[n] != '[' {
			continue
		}
		// The first value must be valid JSON of exactly this length.
		if uint64(len(r.buf)-n) < length {
			if !last {
				return false
			}
			continue
		}
		if json.Valid(r.buf[n : n+int(length)]) {
			r.lengths, r.sure = format, true
			break
		}
	}
	r.examined = true
	return true
}

// prefixed returns the complete values of a body whose values are preceded by binary lengths.
func (r *valueReader) prefixed() (frames []Frame, err error) {
	for len(r.buf) > 0 {
		length, n := r.lengths(r.buf)
		if n < 0 || length > uint64(r.o.MaxFrame) {
			f := Frame{Offset: r.off, Len: len(r.buf), Raw: r.buf, Data: r.buf}
			f.Err = fmt.Errorf("value at %#x: the length is malformed, so the rest of the body is shown as one frame", r.off)
			r.off, r.buf, r.lengths, r.o.Lengths = r.off+int64(len(r.buf)), nil, nil, false
			return append(frames, f), f.Err
		}
		if n == 0 || uint64(len(r.buf)-n) < length {
			break
		}
		end := n + int(length)
		frames = append(frames, r.cut(n, end))
	}
	return frames, nil
}

// cut removes the first end bytes of buf and returns those from index start on as a frame.
func (r *valueReader) cut(start, end int) Frame {
	data := r.buf[start:end:end]
	f := Frame{Offset: r.off, Len: end, Raw: data, Data: data}
	r.buf, r.off = r.buf[end:], r.off+int64(end)
	return f
}

// split scans the new bytes of buf and appends the values that are complete to ready.
func (r *valueReader) split() {
	for at := r.scan; at < len(r.buf); at++ {
		start, end := r.scanner.next(r.buf[at], at)
		if end < 0 {
			// An array whose size is known is one value, and so is text that is not JSON.
			if !r.sure && (r.scanner.array && r.o.Sized || r.scanner.isText()) {
				r.setUnary()
				return
			}
			continue
		}
		data := bytes.TrimSpace(r.buf[start:end:end])
		r.ready = append(r.ready, Frame{Offset: r.off + int64(start), Len: end - start, Raw: data, Data: data})
		r.perChunk++
		// A value behind the first one, outside of an array, shows that the body is a stream.
		r.sure = r.sure || len(r.ready) > 1 && !r.scanner.array
	}
	r.scan = len(r.buf)
}

// setUnary decides that the body is a unary body and not a stream of values.
func (r *valueReader) setUnary() {
	r.unary, r.ready = true, nil
	r.scanner.start = -1
}

// mostElements is the maximum number of array elements that are kept while it is undecided whether the array is a
// stream.
const mostElements = 10_000

// judgeChunk decides at the end of a chunk whether the elements of an array arrive one by one, so that the array is
// a stream.
func (r *valueReader) judgeChunk() {
	if r.sure || !r.scanner.array || r.perChunk == 0 {
		return
	}
	r.several = r.several || r.perChunk > 1
	switch {
	case r.scanner.start >= 0:
		r.torn++
	case !r.scanner.closed:
		r.aligned++
	}
	r.sure = r.aligned > 1 && r.torn == 0
	if r.torn > 0 || r.scanner.closed && r.aligned == 0 || len(r.ready) > mostElements && !r.sure {
		r.setUnary()
	}
}

// taken returns the complete values if the body is certainly a stream, and releases the memory before the
// incomplete one.
func (r *valueReader) taken() []Frame {
	if !r.sure {
		return nil
	}
	frames := r.ready
	r.ready = nil
	keep := r.scan
	if r.scanner.start >= 0 {
		keep = r.scanner.start
		r.scanner.start = 0
	}
	// Returned frames refer to the memory, so it is not reused.
	r.buf, r.off, r.scan = bytes.Clone(r.buf[keep:]), r.off+int64(keep), r.scan-keep
	return frames
}

// close ends the body. It returns the remaining frames of a stream of values, or the whole body in rest if it is
// not such a stream.
func (r *valueReader) close() (frames []Frame, rest []byte, err error) {
	if !r.examined && r.findLengths(true) && r.lengths == nil {
		r.split()
	}
	if r.lengths != nil {
		frames, err = r.prefixed()
		if len(r.buf) > 0 {
			return append(frames, r.partial(r.buf)), nil, io.ErrUnexpectedEOF
		}
		return frames, nil, err
	}
	// A line at the end may lack its line feed.
	if start, end := r.scanner.end(len(r.buf)); end > start && (r.sure || len(r.ready) > 0) {
		data := bytes.TrimSpace(r.buf[start:end])
		r.ready = append(r.ready, Frame{Offset: r.off + int64(start), Len: end - start, Raw: data, Data: data})
		r.scanner.start = -1
	}
	if r.scanner.array && len(r.ready) > 1 && r.torn == 0 && r.aligned > 0 && !r.several {
		r.sure = true
	}
	if !r.sure && (r.scanner.array || len(r.ready) < 2 || !allValues(r.ready)) {
		return nil, r.buf, nil
	}
	if frames = r.ready; r.scanner.start >= 0 {
		return append(frames, r.partial(r.buf[r.scanner.start:])), nil, io.ErrUnexpectedEOF
	}
	return frames, nil, nil
}

// partial returns the frame of a value that the end of the body truncated.
func (r *valueReader) partial(data []byte) Frame {
	f := Frame{Offset: r.off, Len: len(data), Raw: data, Data: data, Partial: true}
	f.Err = fmt.Errorf("value at %#x is truncated after %d bytes: %w", r.off, len(data), io.ErrUnexpectedEOF)
	return f
}

// allValues reports whether all frames are JSON.
func allValues(frames []Frame) bool {
	for i := range frames {
		if !json.Valid(frames[i].Data) {
			return false
		}
	}
	return true
}

// splitValues splits a complete body into JSON values. ok is false if the body is a single value, or anything else.
func splitValues(body []byte, o Options) (frames []Frame, ok bool) {
	r := newValueReader(o)
	if frames, err := r.feed(body); err != nil || len(frames) > 0 {
		rest, _, cerr := r.close()
		return append(frames, rest...), err == nil && cerr == nil
	}
	frames, rest, err := r.close()
	return frames, err == nil && len(rest) == 0 && len(frames) > 0
}

// newValueReader returns a reader for a body that may be a stream of JSON values as o.Values says.
func newValueReader(o Options) *valueReader {
	return &valueReader{o: o, sure: o.Values == ValuesDeclared, scanner: valueScanner{start: -1, whole: o.Values == ValuesDeclared}}
}
