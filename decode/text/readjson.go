package text

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"unwire/decode/field"
)

// ParseJSON returns the bytes that a JSON document describes, in the encoding of the input from which the
// document was printed. It also accepts the fields that `unwire show --json` prints.
//
// Errors: an *Error with the position of a syntax error, or else with the beginning of the offending field, frame
// or message.
func ParseJSON(src []byte) ([]byte, error) {
	r := newJSONReader(src)
	if err := r.run(); err != nil {
		return nil, err
	}
	return r.from.restore(r.out), nil
}

// EncodeJSON is ParseJSON that writes the result to w while it parses, as Encode does.
func EncodeJSON(w io.Writer, src []byte, done func(off int)) error {
	r := newJSONReader(src)
	r.w, r.done = w, done
	if err := r.run(); err != nil {
		return err
	}
	_, err := w.Write(r.from.restore(r.out))
	return err
}

// A jsonReader parses a document member by member, and lists element by element, so that documents of any size
// need little memory. Package jsontree would keep all values of the text in memory.
type jsonReader struct {
	// src is the JSON text.
	src []byte

	// dec splits src into JSON tokens.
	dec *json.Decoder

	// from is the encoding of the document's bytes.
	from inputEncoding

	// out are encoded bytes that were not written yet.
	out []byte

	// w receives the encoded bytes; nil collects all of them in out.
	w io.Writer

	// done is the callback of EncodeJSON.
	done func(off int)

	// written means that bytes were written to w, so that the document's encoding can no longer change.
	written bool
}

// newJSONReader returns a jsonReader that rejects unknown members, which are mostly misspelt ones.
func newJSONReader(src []byte) *jsonReader {
	r := &jsonReader{src: src, dec: json.NewDecoder(bytes.NewReader(src))}
	r.dec.DisallowUnknownFields()
	return r
}

// fail converts err to an *Error with the current position in the JSON text.
func (r *jsonReader) fail(err error) error { return placeError(r.src, r.dec.InputOffset(), err) }

// run parses and encodes the whole document.
func (r *jsonReader) run() error {
	if err := r.delim('{'); err != nil {
		return err
	}
	for r.dec.More() {
		at := r.dec.InputOffset()
		key, err := r.dec.Token()
		if err != nil {
			return r.fail(err)
		}
		if err := r.member(fmt.Sprint(key), at); err != nil {
			return err
		}
	}
	if err := r.delim('}'); err != nil {
		return err
	}
	if rest := bytes.TrimSpace(r.src[r.dec.InputOffset():]); len(rest) > 0 {
		return r.fail(errors.New("there is more text after the JSON document"))
	}
	return nil
}

// delim parses the brace or bracket that is expected next.
func (r *jsonReader) delim(want json.Delim) error {
	tok, err := r.dec.Token()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return r.fail(err)
	}
	if tok != want {
		return r.fail(fmt.Errorf("found %v where %v is expected", tok, want))
	}
	return nil
}

// member parses the value of member key of the document. Its name begins after offset at.
func (r *jsonReader) member(key string, at int64) error {
	var err error

	// Members may come in any order, so each one is handled when it is read.
	switch key {
	case "v":
		var v int
		if err = r.dec.Decode(&v); err == nil && v > 1 {
			return placeError(r.src, r.next(at), fmt.Errorf("the document has version %d, which is newer than this version of unwire supports", v))
		}
	case "in":
		var in string
		if err = r.dec.Decode(&in); err == nil {
			err = r.source(in, at)
		}
	case "as":
		var as string

		// The form follows from the members, so "as" is only read over.
		err = r.dec.Decode(&as)
	case "text":
		var s *string
		if err = r.dec.Decode(&s); err == nil && s != nil {
			r.out = append(r.out, *s...)
		}
	case "bytes":
		var b []byte
		err = r.dec.Decode(&b)
		r.out = append(r.out, b...)
	case "fields":
		return r.list(key, func() (appender, error) { v := new(fieldElement); return v, r.dec.Decode(&v.Field) })
	case "frames":
		return r.list(key, func() (appender, error) { v := new(frameJSON); return v, r.dec.Decode(v) })
	case "messages":
		return r.list(key, func() (appender, error) { v := new(delimitedJSON); return v, r.dec.Decode(v) })
	default:
		return errorAt(r.src, r.next(at), fmt.Errorf("the member %.40q is unknown", key),
			"the known members are v, in and as, and one of fields, frames, messages, text and bytes")
	}

	// Some errors have a position already.
	if err != nil {
		var placedError *Error
		if errors.As(err, &placedError) {
			return err
		}
		return r.fail(err)
	}

	return nil
}

// source parses the member "in", which describes the encoding of the input.
func (r *jsonReader) source(in string, at int64) error {
	words := strings.Fields(in)
	if len(words) == 0 {
		return nil
	}
	if r.written {
		return placeError(r.src, r.next(at), errors.New("the member \"in\" must precede the members that it describes"))
	}
	var err error
	if r.from, err = parseWords(words); err != nil {
		return placeError(r.src, r.next(at), fmt.Errorf("the member in is invalid: %w", err))
	}
	return nil
}

// next returns the offset of the first value or name at or after offset at.
func (r *jsonReader) next(at int64) int64 {
	for at < int64(len(r.src)) && bytes.IndexByte([]byte(" \t\r\n,:"), r.src[at]) >= 0 {
		at++
	}
	return at
}

// An appender is a list element that can append its encoded bytes.
type appender interface {
	append(dst []byte) ([]byte, error)
}

// A fieldElement is a field at the top level of a document.
type fieldElement struct {
	// Field is the field as parsed from JSON. The embedding type adds the method append, which encodes it.
	field.Field
}

// append appends the encoded field to dst.
func (e *fieldElement) append(dst []byte) ([]byte, error) {
	return e.Append(dst, rewrapEdited)
}

// list parses a JSON list. element parses one element, whose encoded bytes are appended to the output. name is the
// list's name in errors.
func (r *jsonReader) list(name string, element func() (appender, error)) error {
	tok, err := r.dec.Token()
	switch {
	case err != nil:
		return r.fail(err)
	case tok == nil:
		return nil // null
	case tok != json.Delim('['):
		return r.fail(fmt.Errorf("%s: found %v where a list is expected", name, tok))
	}

	for i := 0; r.dec.More(); i++ {
		at := r.next(r.dec.InputOffset())
		v, err := element()
		// Report the position as precisely as the decoder's error allows.
		if err != nil {
			var typed *json.UnmarshalTypeError
			if errors.As(err, &typed) {
				return placeError(r.src, at+max(typed.Offset-1, 0), fmt.Errorf("%s[%d]: %w", name, i, err))
			}
			if strings.HasPrefix(err.Error(), "json: unknown field") {
				return placeError(r.src, at, err)
			}
			return r.fail(err)
		}
		// Decoding null would leave an element unset without an error.
		if bytes.HasPrefix(r.src[at:], []byte("null")) {
			return errorAt(r.src, at, fmt.Errorf("%s[%d] must not be null", name, i), "")
		}
		if r.out, err = v.append(r.out); err != nil {
			return errorAt(r.src, at, fmt.Errorf("%s[%d]: %w", name, i, err), "")
		}
		if err := r.drain(); err != nil {
			return err
		}
	}

	_, err = r.dec.Token()
	if err != nil {
		return r.fail(err)
	}
	return nil
}

// drain writes the encoded bytes to w if enough have accumulated.
func (r *jsonReader) drain() error {
	if r.w == nil || len(r.out) < pieceLen || !r.from.plain() {
		return nil
	}

	// A document that was hex or compressed is written at the end, as a whole.
	if _, err := r.w.Write(r.out); err != nil {
		return err
	}
	r.out, r.written = r.out[:0], true
	if r.done != nil {
		r.done(int(r.dec.InputOffset()))
	}
	return nil
}

// placeError converts an error of the JSON decoder to an *Error. off is its position, unless the error is a syntax
// error, which has its own.
func placeError(src []byte, off int64, err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) || errors.Is(err, io.ErrUnexpectedEOF) {
		// The decoder counts from where it was, so parse the whole text for the offset.
		var all json.RawMessage
		if whole := json.Unmarshal(src, &all); errors.As(whole, &syntax) {
			off, err = syntax.Offset-1, whole
		}
	}
	hint := ""
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		hint = "the member " + name + " is not allowed here; 'unwire decode --format json' shows the valid members"
	}
	return errorAt(src, off, err, hint)
}
