package values

import (
	"encoding/base64"
	"iter"
	"strconv"
	"strings"
	"unicode/utf8"

	"unwire/decode/envelope"
	"unwire/decode/jsontree"
	"unwire/decode/transcript/ident"
	"unwire/decode/wire"
)

// The limits of the search inside values.
const (
	// MaxTraced is the size in bytes above which a value is not searched for ids.
	MaxTraced = 1 << 20
	// MaxInflated is how many bytes are decompressed to search all values.
	MaxInflated Budget = 256 << 20
)

// A Part is a value inside another: all of it, a value of the JSON or message in it, an identifier
// in its text, or the content of its base64 or compressed data.
type Part struct {
	// At is the position of the part in the value, such as "", "json results[0].id", "word 2",
	// "base64", "base64 1.2" or "gzip json a".
	At string
	// holder is the position of the enclosing part.
	holder string
	// Value is the text or bytes of the part.
	Value string
	// ID means that the part looks like an identifier.
	ID bool
	// Number means that the part is a number in digits.
	Number bool
	// layer means that the part was inside another encoding.
	layer bool
	// word means that the part is a word of the enclosing part.
	word bool

	// message means that the part was parsed as a protobuf message.
	message bool
}

// MaxNested is the depth of JSON, base64 and compression inside each other that is searched.
const MaxNested = 4

// A Budget is the number of bytes that may still be decompressed.
type Budget int64

// PartsOf splits a value into the parts that are encoded in it or separated by spaces.
func PartsOf(data []byte, b *Budget) []Part {
	p := partSearch{budget: b}
	p.add("", "", data, 0, false)
	return p.out
}

// Parts returns the parts of a leaf. A message has only itself as a part, because its fields are
// leaves.
func (l *Leaf) Parts() (out []Part) {
	if l.Number {
		if !l.Small && IsDigits(l.Value[1:]) {
			out = append(out, Part{Value: l.Value[1:], Number: true})
		}
		if l.Data == nil {
			return out
		}
	}
	switch {
	case l.IsMessage():
		if !l.Object && len(l.Data) >= ShortText && len(l.Data) <= MaxTraced && IsBinaryID(l.Data) {
			out = append(out, Part{Value: string(l.Data), ID: true})
		}
		return out
	case l.Budget == nil:
		own := Budget(MaxTraced)
		return append(out, PartsOf(l.Data, &own)...)
	}
	return append(out, PartsOf(l.Data, l.Budget)...)
}

// IsMessage reports whether a leaf is definitely a message, an object or an array.
func (l *Leaf) IsMessage() bool {
	return l.Object || l.Inner > 0 && !l.Opaque && !IsPrintable(l.Data)
}

// A partSearch splits one value into its parts.
type partSearch struct {
	out    []Part
	budget *Budget
}

// add adds a value and its parts. prefix is the beginning of the parts' positions.
func (p *partSearch) add(holder, prefix string, data []byte, depth int, layer bool) {
	if len(data) < ShortText || len(data) > MaxTraced {
		return
	}
	s, at := string(data), strings.TrimSuffix(prefix, " ")
	p.out = append(p.out, Part{At: at, holder: holder, Value: s, ID: ClassOf(s) != "" || IsBinaryID(data), layer: layer})

	// A value may have several interpretations; the parts of all of them are added.
	text := IsPrintable(data)
	if !text {
		if depth > 0 {
			p.addMessage(at, prefix, data, depth)
		}
		if depth < MaxNested {
			p.inflate(at, prefix, data, depth)
		}
	}
	if !utf8.ValidString(s) {
		return
	}
	if beginsContainer(s) && depth < MaxNested {
		p.addJSON(at, prefix+"json ", data, depth)
	}
	if b, _ := FromBase64(s); len(b) >= ShortText && depth < MaxNested {
		p.add(at, prefix+"base64 ", b, depth+1, true)
	}
	if text || depth == 0 {
		p.addWords(at, prefix, s)
	}
}

// inflate adds the parts of compressed data.
func (p *partSearch) inflate(holder, prefix string, data []byte, depth int) {
	if encoding, b := inflate(data, p.budget); encoding != "" {
		p.add(holder, prefix+encoding+" ", b, depth+1, true)
	}
}

// brotli has no signature, so data counts as compressed only if it decompresses to text or a
// message.
const brotli = "br"

// inflate decompresses data; encoding is "" if data is not compressed.
func inflate(data []byte, b *Budget) (encoding string, out []byte) {
	most := min(int64(*b), MaxTraced)
	if most <= 0 || len(data) < ShortText {
		return "", nil
	}
	if encoding = envelope.Sniff(data); encoding == "" {
		encoding = brotli
	}
	out, err := envelope.Decompress(encoding, data, most)
	*b -= Budget(len(out))
	if err != nil {
		return "", nil
	}
	if encoding == brotli && (len(out) < ShortText || !IsPrintable(out) && wire.Parse(out, wire.Options{}).Err() != nil) {
		return "", nil
	}
	return encoding, out
}

// addMessage adds the parts of a message's fields. Random bytes may parse too, so an identifier
// counts both as a whole and by its fields.
func (p *partSearch) addMessage(holder, prefix string, data []byte, depth int) {
	t := wire.Parse(data, wire.Options{})
	if t.Err() != nil {
		return
	}
	p.out[len(p.out)-1].message = true
	for _, l := range protoLeaves(nil, t, 0, nil, "", 1) {
		switch {
		case l.Number:
			p.addNumber(holder, prefix, &l)
		case l.Inner == 0 || l.Opaque || IsBinaryID(l.Data):
			p.add(holder, prefix+l.Path+" ", l.Data, depth+1, false)
		}
	}
}

// addNumber adds a number that may be an identifier.
func (p *partSearch) addNumber(holder, prefix string, l *Leaf) {
	if digits := l.Value[1:]; !l.Small && IsDigits(digits) {
		p.out = append(p.out, Part{At: prefix + l.Path, holder: holder, Value: digits, Number: true})
	}
}

// addJSON adds the parts of the values and keys in a JSON object or array.
func (p *partSearch) addJSON(holder, prefix string, data []byte, depth int) {
	root, err := jsontree.Parse(data)
	if err != nil {
		return
	}
	for _, l := range jsonLeaves(nil, root, "", 1) {
		switch {
		case l.Object:
		case l.Number && l.Data == nil:
			p.addNumber(holder, prefix, &l)
		default:
			if l.Number {
				p.addNumber(holder, prefix, &l)
			}
			p.add(holder, prefix+l.Path+" ", l.Data, depth+1, false)
		}
	}
}

// addWords adds the identifiers in a text, unless the whole text is one identifier.
func (p *partSearch) addWords(holder, prefix, s string) {
	n := 0
	for w := range wordsOf(s) {
		if c := ClassOf(w); c == "" || c == ident.Time {
			continue
		}
		if w != s {
			p.out = append(p.out, Part{At: prefix + "word " + strconv.Itoa(n), holder: holder, Value: w, ID: true, word: true})
		}
		n++
	}
}

// beginsContainer reports whether a text starts like a JSON object or array.
func beginsContainer(s string) bool {
	s = strings.TrimLeft(s, " \t\r\n")
	return s != "" && (s[0] == '{' || s[0] == '[')
}

// IsDigits reports whether a text consists of decimal digits.
func IsDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// FromBase64 decodes a text in the base64 alphabet that it uses; nil if it is not base64.
func FromBase64(s string) ([]byte, *base64.Encoding) {
	for _, e := range [...]*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding, base64.RawURLEncoding} {
		if b, err := e.Strict().DecodeString(s); err == nil {
			return b, e
		}
	}
	return nil, nil
}

// wordsOf yields the runs of letters, digits and base64 characters in a text, and the part of each
// that may be an identifier.
func wordsOf(s string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for i := 0; i < len(s); {
			j := i
			for j < len(s) && isWordByte(s[j]) {
				j++
			}
			if j == i {
				i++
				continue
			}
			w := s[i:j]
			i = j
			if !yield(w) {
				return
			}
			for sub := range strings.FieldsFuncSeq(w, func(r rune) bool { return strings.ContainsRune("/+=.", r) }) {
				if sub != w && !yield(sub) {
					return
				}
			}
		}
	}
}

func isWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("_-+/=.", c) >= 0
}

// A Candidate is a value in a leaf that the server may have issued.
type Candidate struct {
	// Value is the text of the candidate identifier.
	Value string
	// At is the position of the part that contains it; "" for the whole leaf and its words.
	At string
	// Whole means that the candidate is not only a word of a longer text.
	Whole bool
}

// Candidates returns the texts in a leaf that may be identifiers.
func (l *Leaf) Candidates() iter.Seq[Candidate] { return CandidatesIn(l.Data, l.Parts) }

// CandidatesIn returns the candidates in a value, whose parts are computed by parts.
func CandidatesIn(data []byte, parts func() []Part) iter.Seq[Candidate] {
	return func(yield func(Candidate) bool) {
		s := string(data)
		if !yield(Candidate{Value: s, Whole: true}) || len(s) > MaxTraced || len(s) < ShortText {
			return
		}
		for _, p := range parts() {
			if p.At != "" && (!p.word || p.holder != "") && !yield(Candidate{p.Value, p.At, true}) {
				return
			}
		}
		if !utf8.ValidString(s) {
			return
		}
		for w := range wordsOf(s) {
			if !yield(Candidate{Value: w}) {
				return
			}
		}
	}
}
