package values

import (
	"encoding/base64"
	"encoding/json"
	"iter"
	"regexp"
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
	// At is the position of the part in the value, such as "", "json results[0].id", "word 2", "word 2.1" (a part of
	// word 2), "base64", "base64 1.2" or "gzip json a".
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

	// tail means that the part is an identifier without its prefix.
	tail bool

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
func (l *Leaf) Parts() (out []Part) { return l.PartsWith(nil) }

// PartsWith is Parts with the words at the positions in known, even if they do not look like identifiers: other messages
// have identifiers there.
func (l *Leaf) PartsWith(known map[string]bool) (out []Part) {
	if l.Number {
		if !l.Small && IsDigits(l.Value[1:]) {
			out = append(out, Part{Value: l.Value[1:], Number: true, ID: ClassOf(l.Value[1:]) != ""})
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
	}
	own := Budget(MaxTraced)
	p := partSearch{budget: l.Budget, known: known}
	if p.budget == nil {
		p.budget = &own
	}
	p.add("", "", l.Data, 0, false)
	return append(out, p.out...)
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

	// known are the positions of words that count in any case.
	known map[string]bool
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
	p.addTail(at, s)

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
		p.addWords(at, prefix, s, depth)
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

// deflate is the name of zlib's format as an HTTP content encoding.
const deflate = "deflate"

// isZlib reports whether data begins with the two bytes of zlib's header, which have a checksum.
func isZlib(data []byte) bool {
	return data[0] == 0x78 && (int(data[0])<<8|int(data[1]))%31 == 0
}

// inflate decompresses data, as far as the budget allows; encoding is "" if data is not compressed.
func inflate(data []byte, b *Budget) (encoding string, out []byte) {
	most := min(int64(*b), MaxTraced)
	if most <= 0 || len(data) < ShortText {
		return "", nil
	}
	if encoding = envelope.Sniff(data); encoding == "" {
		encoding = brotli
		if isZlib(data) {
			encoding = deflate
		}
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
func (p *partSearch) addWords(holder, prefix, s string, depth int) {
	encoded := 0
	eachWordOf(s, func(i, sub int, w string) bool {
		if b := encodedIn(w); b != nil && w != s && depth < MaxNested {
			p.add(holder, prefix+"encoded "+strconv.Itoa(encoded)+" base64 ", b, depth+1, true)
			encoded++
		}
		c := ClassOf(w)
		isID := c != "" && c != ident.Time
		if w == s || !isID && p.known == nil {
			return true
		}
		at := prefix + "word " + strconv.Itoa(i)
		if sub > 0 {
			at += "." + strconv.Itoa(sub)
		}
		if isID || p.known[at] {
			p.out = append(p.out, Part{At: at, holder: holder, Value: w, ID: isID, word: true})
			p.addTail(at, w)
		}
		return true
	})
}

// encodedIn returns the content of a word that is base64 of JSON or of compressed data, such as the end
// of a data URL; nil if it is neither.
func encodedIn(w string) []byte {
	const shortest = 16
	if len(w) < shortest {
		return nil
	}
	b, _ := FromBase64(w)
	if beginsContainer(string(b)) && json.Valid(b) || envelope.Sniff(b) != "" {
		return b
	}
	return nil
}

// addTail adds the identifier s, which is at the position at, without its prefix.
func (p *partSearch) addTail(at, s string) {
	if tail := tailOf(s); tail != "" {
		p.out = append(p.out, Part{At: strings.TrimPrefix(at+" tail", " "), holder: at, Value: tail, ID: true, word: true, tail: true})
	}
}

// tailOf returns an identifier without its prefix, as in toolu_ID, 0xID and call-UUID; "" if it has
// none.
func tailOf(s string) string {
	const uuidLen, shortest, shortestPrefix = 36, 10, 3
	class := ClassOf(s)
	switch {
	case class == ident.UUID || class == ident.Time || len(s) > longLeaf:
	case len(s) > uuidLen && ClassOf(s[len(s)-uuidLen:]) == ident.UUID:
		return s[len(s)-uuidLen:]
	case strings.HasPrefix(s, "0x") && ClassOf(s[2:]) == ident.Hex:
		return s[2:]
	case class == ident.ID:
		// Base64url contains dashes too.
		cut := strings.LastIndexAny(s, "_-")
		if cut >= shortestPrefix && isWord(strings.NewReplacer("_", "", "-", "").Replace(s[:cut])) && len(s)-cut > shortest {
			return s[cut+1:]
		}
	}
	return ""
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

// escape matches a character that is escaped as in a URL.
var escape = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)

// wordsOf yields the words of a text, i.e. the runs of letters, digits and base64 characters, and the
// part of each that may be an identifier.
func wordsOf(s string) iter.Seq[string] {
	return func(yield func(string) bool) {
		eachWordOf(s, func(_, _ int, w string) bool { return yield(w) })
	}
}

// eachWordOf calls visit for the words of a text, with the number of the word and, for a part of it, the number of the
// part from 1. It ends when visit returns false.
func eachWordOf(s string, visit func(word, part int, w string) bool) {
	n := 0
	for i := 0; i < len(s); {
		j := i
		for j < len(s) && isWordByte(s[j]) {
			j++
		}
		if j == i {
			i++
			continue
		}
		if !eachPartOf(s[i:j], func(part int, w string) bool { return visit(n, part, w) }) {
			return
		}
		i = j
		n++
	}
}

// eachPartOf calls visit for a word, as part 0, and for its parts. It returns false if visit did.
func eachPartOf(w string, visit func(part int, w string) bool) bool {
	if !visit(0, w) {
		return false
	}
	texts := []string{w}
	if strings.Contains(w, "%") {
		texts = append(texts, escape.ReplaceAllString(w, "/"))
	}
	n := 0
	for _, text := range texts {
		for part := range strings.FieldsFuncSeq(text, joinsWords) {
			if n++; part != w && !visit(n, part) {
				return false
			}
		}
	}
	return true
}

// joinsWords reports whether a character may be part of base64, or separate words.
func joinsWords(r rune) bool { return r == '/' || r == '+' || r == '=' || r == '.' }

// isWordByte reports whether a byte belongs to a word; see wordsOf.
func isWordByte(c byte) bool {
	switch c {
	case '_', '-', '+', '/', '=', '.', '%':
		return true
	}
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
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
func (l *Leaf) Candidates() iter.Seq[Candidate] {
	if l.Number && l.Data == nil {
		return func(yield func(Candidate) bool) { yield(Candidate{Value: l.Text(), Whole: true}) }
	}
	return CandidatesIn(l.Data, l.Parts)
}

// CandidatesIn returns the texts in data that may be identifiers. parts computes the parts of data; it
// is called at most once.
func CandidatesIn(data []byte, parts func() []Part) iter.Seq[Candidate] {
	return func(yield func(Candidate) bool) {
		s := string(data)
		if !yield(Candidate{Value: s, Whole: true}) || len(s) > MaxTraced || len(s) < ShortText {
			return
		}
		for _, p := range parts() {
			if p.At != "" && !p.tail && (!p.word || p.holder != "") && !yield(Candidate{p.Value, p.At, true}) {
				return
			}
		}
		if !utf8.ValidString(s) {
			return
		}
		for w := range wordsOf(s) {
			for run := range runsOf(w) {
				if !yield(Candidate{Value: run}) {
					return
				}
			}
		}
	}
}

// maxRunParts limits the number of parts of a word whose runs are examined.
const maxRunParts = 12

// yieldHexIn yields the identifiers in a hexadecimal word: what follows 0x, and the halves of 32 digits, which may be two
// numbers. It returns false if yield did.
func yieldHexIn(w string, yield func(string) bool) bool {
	const digits = 32
	if rest, ok := strings.CutPrefix(w, "0x"); ok {
		return yield(rest)
	}
	if len(w) == digits && ClassOf(w) == ident.Hex {
		return yield(w[:digits/2]) && yield(w[digits/2:])
	}
	return true
}

// runsOf yields a word and then, from long to short, the runs of its parts that - and _ separate: in
// out_ID_1 the identifier is one of them.
func runsOf(w string) iter.Seq[string] {
	return func(yield func(string) bool) {
		if !yield(w) || !yieldHexIn(w, yield) {
			return
		}
		cuts := []int{-1}
		for i := range len(w) {
			if w[i] == '-' || w[i] == '_' {
				cuts = append(cuts, i)
			}
		}
		if cuts = append(cuts, len(w)); len(cuts) > maxRunParts+1 {
			return
		}
		for n := len(cuts) - 2; n > 0; n-- {
			for i := 0; i+n < len(cuts); i++ {
				if run := w[cuts[i]+1 : cuts[i+n]]; len(run) >= ShortText && !yield(run) {
					return
				}
			}
		}
	}
}
