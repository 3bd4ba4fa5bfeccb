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

// ParseJSON returns the bytes that a document in JSON describes, written as the
// document was that it was made of. The fields may also be those of the
// contract's T, as `unwire show --json` writes them.
//
// Errors: an *Error: the place where it is no JSON, else the beginning of the
// field, frame or message that is wrong, and the way into it.
func ParseJSON(src []byte) ([]byte, error) {
	r := newJSONReader(src)
	if err := r.run(); err != nil {
		return nil, err
	}
	return r.from.restore(r.out), nil
}

// EncodeJSON is ParseJSON that writes as it reads, as Encode does.
func EncodeJSON(w io.Writer, src []byte, done func(off int)) error {
	r := newJSONReader(src)
	r.w, r.done = w, done
	if err := r.run(); err != nil {
		return err
	}
	_, err := w.Write(r.from.restore(r.out))
	return err
}

// A jsonReader reads a document member by member, and of a list one element
// after the other, so that it can write what it has read of a document of any size.
// Package jsontree has all values of a text in memory at once.
type jsonReader struct {
	src  []byte
	dec  *json.Decoder
	from source
	out  []byte

	w       io.Writer // nil: all is gathered in out
	done    func(off int)
	written bool
}

func newJSONReader(src []byte) *jsonReader {
	r := &jsonReader{src: src, dec: json.NewDecoder(bytes.NewReader(src))}
	r.dec.DisallowUnknownFields()
	return r
}

// fail puts the place into an error: where the decoder is, or an offset.
func (r *jsonReader) fail(err error) error { return placed(r.src, r.dec.InputOffset(), err) }

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
		return r.fail(errors.New("more behind the document"))
	}
	return nil
}

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

// member reads a member of the document whose name begins behind at.
func (r *jsonReader) member(key string, at int64) error {
	var err error
	switch key {
	case "v":
		var v int
		if err = r.dec.Decode(&v); err == nil && v > 1 {
			return placed(r.src, r.next(at), fmt.Errorf("version %d is newer than this program", v))
		}
	case "in":
		var in string
		if err = r.dec.Decode(&in); err == nil {
			err = r.source(in, at)
		}
	case "as":
		var as string
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
		return errorAt(r.src, r.next(at), fmt.Errorf("%.40q is no member of a document", key),
			"a document has v, in, as, and one of fields, frames, messages, text and bytes")
	}
	if err != nil {
		var placedError *Error
		if errors.As(err, &placedError) {
			return err
		}
		return r.fail(err)
	}
	return nil
}

func (r *jsonReader) source(in string, at int64) error {
	words := strings.Fields(in)
	if len(words) == 0 {
		return nil
	}
	if r.written {
		return placed(r.src, r.next(at), errors.New("in has to stand before what it is about"))
	}
	var err error
	if r.from, err = parseWords(words); err != nil {
		return placed(r.src, r.next(at), fmt.Errorf("in: %w", err))
	}
	return nil
}

// next is the offset of the next value behind at.
func (r *jsonReader) next(at int64) int64 {
	for at < int64(len(r.src)) && bytes.IndexByte([]byte(" \t\r\n,:"), r.src[at]) >= 0 {
		at++
	}
	return at
}

// An appender is an element of a list.
type appender interface {
	append(dst []byte) ([]byte, error)
}

// A fieldElement is a field of a document.
type fieldElement struct{ field.Field }

func (e *fieldElement) append(dst []byte) ([]byte, error) {
	return e.Append(dst, rewrapEdited)
}

// list reads the elements of a list, and appends their bytes.
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
		if err != nil {
			var typed *json.UnmarshalTypeError
			if errors.As(err, &typed) {
				return placed(r.src, at+max(typed.Offset-1, 0), fmt.Errorf("%s[%d]: %w", name, i, err))
			}
			if strings.HasPrefix(err.Error(), "json: unknown field") {
				return placed(r.src, at, err)
			}
			return r.fail(err)
		}
		if bytes.HasPrefix(r.src[at:], []byte("null")) {
			return errorAt(r.src, at, fmt.Errorf("%s[%d]: null", name, i), "")
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

// drain writes what is finished, if that is much.
func (r *jsonReader) drain() error {
	if r.w == nil || len(r.out) < pieceLen || !r.from.plain() {
		return nil
	}
	if _, err := r.w.Write(r.out); err != nil {
		return err
	}
	r.out, r.written = r.out[:0], true
	if r.done != nil {
		r.done(int(r.dec.InputOffset()))
	}
	return nil
}

// placed is an Error of the JSON decoder; off is where it is unless it is one of syntax.
func placed(src []byte, off int64, err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) || errors.Is(err, io.ErrUnexpectedEOF) {
		// The decoder counts from wherever it was; a look at all of it tells.
		var all json.RawMessage
		if whole := json.Unmarshal(src, &all); errors.As(whole, &syntax) {
			off, err = syntax.Offset-1, whole
		}
	}
	hint := ""
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		hint = "nothing is called " + name + " here: see what 'unwire decode --format json' writes"
	}
	return errorAt(src, off, err, hint)
}
