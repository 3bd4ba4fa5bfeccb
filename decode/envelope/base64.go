package envelope

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// A base64Reader decodes the base64 of grpc-web-text as it arrives. The text is a sequence of base64 runs, each
// with its own padding. The reader also maps offsets of decoded bytes back to offsets in the text, because
// frames report the latter.
type base64Reader struct {
	// quad has the characters of an incomplete group of four.
	quad []byte

	// start is the text offset of the first character of quad.
	start int64

	// pos is the offset, in the base64 text, of the next character.
	pos int64

	// out is the number of bytes decoded so far.
	out int64

	// marks has an entry wherever padding or white space breaks the ratio of 4 characters to 3 bytes.
	marks []mark
}

// A mark records that the decoded byte at offset out comes from the group of four characters at offset text.
type mark struct {
	// text is the offset in the base64 text, in bytes, at which a group of four characters begins.
	text int64

	// out is the offset, in the decoded data, of the first byte of that group.
	out int64
}

// decode decodes the next characters p and returns the bytes of all groups of four that they complete.
func (r *base64Reader) decode(p []byte) (out []byte, err error) {
	for _, c := range p {
		switch c {
		case '\r', '\n', ' ', '\t':
			r.pos++
			continue
		}
		if len(r.quad) == 0 {
			r.start = r.pos
		}
		r.pos++
		r.quad = append(r.quad, c)
		if len(r.quad) == 4 {
			if out, err = r.flush(out); err != nil {
				return out, err
			}
		}
	}
	return out, nil
}

// close decodes the last group of base64 characters if it lacks padding.
func (r *base64Reader) close() ([]byte, error) {
	if len(r.quad) == 0 {
		return nil, nil
	}
	return r.flush(nil)
}

// flush decodes quad, appends the bytes to out and empties quad.
func (r *base64Reader) flush(out []byte) ([]byte, error) {
	if k := len(r.marks); k == 0 || r.at(r.out) != r.start {
		r.marks = append(r.marks, mark{r.start, r.out})
	}
	b, err := decodeBase64(string(r.quad))
	if err != nil {
		return out, fmt.Errorf("base64 at %#x: %q cannot be decoded: %w", r.start, r.quad, err)
	}
	r.quad = r.quad[:0]
	r.out += int64(len(b))
	return append(out, b...), nil
}

// at returns the offset in the text of the group of four characters from which decoded byte off comes.
func (r *base64Reader) at(off int64) int64 {
	m := mark{}
	for k := len(r.marks) - 1; k >= 0; k-- {
		if m = r.marks[k]; m.out <= off {
			break
		}
	}
	return m.text + (off-m.out)/3*4
}

// relocate converts the frames' offsets and lengths from decoded bytes to characters of the text.
func (r *base64Reader) relocate(frames []Frame) {
	for i := range frames {
		f := &frames[i]
		from, to := f.Offset, f.Offset+int64(f.Len)
		// The last byte's group ends the frame, including its padding.
		f.Offset = r.at(from)
		f.Len = int(r.at(to-1) + 4 - f.Offset)
	}
}

// forget removes marks that are not needed for bytes from off on, so that marks does not grow with the body.
func (r *base64Reader) forget(off int64) {
	k := 0
	for k+1 < len(r.marks) && r.marks[k+1].out <= off {
		k++
	}
	r.marks = r.marks[k:]
}

// decodeBase64 decodes base64 with or without padding, in the standard or the URL alphabet.
func decodeBase64(s string) ([]byte, error) {
	if strings.ContainsAny(s, "-_") {
		s = strings.NewReplacer("-", "+", "_", "/").Replace(s)
	}
	b, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(s, "="))
	if err != nil {
		return b, errors.New("the data is not base64")
	}
	return b, nil
}
