package envelope

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// A base64Reader undoes the base64 of grpc-web-text as it arrives. The text is
// one or more padded runs, one behind the other.
type base64Reader struct {
	quad  []byte // characters of an incomplete group of four
	start int64  // text offset of quad's first character
	pos   int64  // text offset of the next character
	out   int64  // bytes decoded
	marks []mark // where text and bytes stop advancing four to three
}

// A mark says that the byte at out was made from the text at text.
type mark struct{ text, out int64 }

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

// close decodes a last group that lacks its padding.
func (r *base64Reader) close() ([]byte, error) {
	if len(r.quad) == 0 {
		return nil, nil
	}
	return r.flush(nil)
}

func (r *base64Reader) flush(out []byte) ([]byte, error) {
	if k := len(r.marks); k == 0 || r.at(r.out) != r.start {
		r.marks = append(r.marks, mark{r.start, r.out})
	}
	b, err := decodeBase64(string(r.quad))
	if err != nil {
		return out, fmt.Errorf("envelope: base64 at %#x: %q: %w", r.start, r.quad, err)
	}
	r.quad = r.quad[:0]
	r.out += int64(len(b))
	return append(out, b...), nil
}

// at is the text offset of the group that decoded byte off came from.
func (r *base64Reader) at(off int64) int64 {
	m := mark{}
	for k := len(r.marks) - 1; k >= 0; k-- {
		if m = r.marks[k]; m.out <= off {
			break
		}
	}
	return m.text + (off-m.out)/3*4
}

// relocate turns the frames' offsets and lengths into those of the text.
func (r *base64Reader) relocate(frames []Frame) {
	for i := range frames {
		f := &frames[i]
		from, to := f.Offset, f.Offset+int64(f.Len)
		f.Offset = r.at(from)
		f.Len = int(r.at(to-1) + 4 - f.Offset)
	}
}

// forget drops the marks that bytes from off on do not need.
func (r *base64Reader) forget(off int64) {
	k := 0
	for k+1 < len(r.marks) && r.marks[k+1].out <= off {
		k++
	}
	r.marks = r.marks[k:]
}

// decodeBase64 reads base64 with or without padding, in either alphabet.
func decodeBase64(s string) ([]byte, error) {
	if strings.ContainsAny(s, "-_") {
		s = strings.NewReplacer("-", "+", "_", "/").Replace(s)
	}
	b, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(s, "="))
	if err != nil {
		return b, errors.New("not base64")
	}
	return b, nil
}
