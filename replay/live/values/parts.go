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

// A Part is a value inside another value: all of it, a value of the JSON or message in it, an
// identifier in its text, or the content of its base64 or compressed data.
type Part struct {
	// At is the position of the part in the value, such as "", "json results[0].id", "word 2",
	// "base64", "base64 1.2" or "gzip json a".
	At string
	// holder is the position of the part that directly contains this one.
	holder string
	// Value is the text or bytes of the part.
	Value string
	// ID means that the part has the format of an identifier.
	ID bool
	// Number means that the part is a number; Value has its digits.
	Number bool
	// layer means that the part was decoded from base64 or decompressed.
	layer bool
	// word means that the part is a word of the text that contains it.
	word bool

	// message means that the part was parsed as a protobuf message.
	message bool
}

// MaxNested limits how deeply JSON, base64 and compression inside each other are searched.
const MaxNested = 4

// A Budget is the number of bytes that may still be decompressed.
type Budget int64

// PartsOf divides a value into its parts: values that are encoded in it, and words. b limits how much
// is decompressed.
func PartsOf(data []byte, b *Budget) []Part {
	p := partSearch{budget: b}
	p.add("", "", data, 0, false)
	return p.out
}

// Parts divides the value into its parts. A message has only itself as a part, because its fields are
// leaves themselves.
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

// IsMessage reports whether a leaf is certainly a message, a JSON object or an array.
func (l *Leaf) IsMessage() bool {
	return l.Object || l.Inner > 0 && !l.Opaque && !IsPrintable(l.Data)
}

// A partSearch divides one value into its parts.
type partSearch struct {
	// out are the parts found so far.
	out []Part

	// budget is the number of bytes that may still be decompressed.
	budget *Budget
}

// add adds the value data and its parts. holder is the position of the part that contains it, prefix
// the position of data, and depth the number of encodings around it; layer means that data was decoded
// or decompressed.
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

// inflate adds the parts of data if it is compressed.
func (p *partSearch) inflate(holder, prefix string, data []byte, depth int) {
	if encoding, b := inflate(data, p.budget); encoding != "" {
		p.add(holder, prefix+encoding+" ", b, depth+1, true)
	}
}

// brotli is the name of that compression. It has no signature, so data only counts as compressed if it
// decompresses to text or a message.
const brotli = "br"

// inflate decompresses data, as far as the budget allows; encoding is "" if data is not compressed.
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

// addMessage adds the fields of data if it is a protobuf message. Random bytes may parse as a message
// too, so an identifier counts both as a whole and by its fields.
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

// addNumber adds the number l, unless it is too small to be an identifier.
func (p *partSearch) addNumber(holder, prefix string, l *Leaf) {
	if digits := l.Value[1:]; !l.Small && IsDigits(digits) {
		p.out = append(p.out, Part{At: prefix + l.Path, holder: holder, Value: digits, Number: true})
	}
}

// addJSON adds the values and keys of a JSON object or array, with their parts.
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

// beginsContainer reports whether a text begins like a JSON object or array.
func beginsContainer(s string) bool {
	s = strings.TrimLeft(s, " \t\r\n")
	return s != "" && (s[0] == '{' || s[0] == '[')
}

// IsDigits reports whether a text consists of decimal digits.
func IsDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// FromBase64 decodes base64 in the standard or the URL alphabet, whichever the text uses; nil if it is
// not base64.
func FromBase64(s string) ([]byte, *base64.Encoding) {
	for _, e := range [...]*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding, base64.RawURLEncoding} {
		if b, err := e.Strict().DecodeString(s); err == nil {
			return b, e
		}
	}
	return nil, nil
}

// wordsOf yields the words of a text, i.e. the runs of letters, digits and base64 characters, and the
// part of each that may be an identifier.
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

// isWordByte reports whether a byte belongs to a word; see wordsOf.
func isWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("_-+/=.", c) >= 0
}

// A Candidate is a text in a client's value that may be an identifier which the server issued.
type Candidate struct {
	// Value is the text that may be an identifier.
	Value string
	// At is the position of the part of the value that contains it; "" for the whole value and its
	// words.
	At string
	// Whole means that the candidate is a whole part, and not only a word of a longer text.
	Whole bool
}

// Candidates returns the texts in the value that may be identifiers.
func (l *Leaf) Candidates() iter.Seq[Candidate] { return CandidatesIn(l.Data, l.Parts) }

// CandidatesIn returns the texts in data that may be identifiers. parts computes the parts of data; it
// is called at most once.
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
