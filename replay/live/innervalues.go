package live

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"
	"unicode/utf8"

	"unwire/decode/fieldpath"
	"unwire/decode/jsontree"
	"unwire/decode/transcript/ident"
	"unwire/decode/wire"
	"unwire/replay/edit"
)

// Bounds of what is looked for inside values.
const (
	maxTraced = 1 << 20 // bytes of a value that is searched for ids
	maxTokens = 200_000 // spellings of issued values that are known
	// bytes of an issued value that is looked for inside others
	maxTokenLen = 4096
)

// A spelling is a form in which a client may carry on what a server issued.
type spelling string

// The spellings. Those of a digest are of the SHA-256 of the value.
const (
	asIs         spelling = ""
	asHex        spelling = "hex"
	asHexUpper   spelling = "HEX"
	asBase64     spelling = "base64"
	asBase64URL  spelling = "base64url"
	asRawBase64  spelling = "base64 without padding"
	asRawURL     spelling = "base64url without padding"
	asBytes      spelling = "bytes" // of a text that is hex or a UUID
	asUpper      spelling = "upper case"
	asUndashed   spelling = "without dashes"
	asDigest     spelling = "sha256"
	asHexDigest  spelling = "sha256 hex"
	asTextDigest spelling = "sha256 base64"
)

// spellings lists them all.
var spellings = [...]spelling{
	asIs, asHex, asHexUpper, asBase64, asBase64URL, asRawBase64, asRawURL, asBytes, asUpper, asUndashed, asDigest, asHexDigest, asTextDigest,
}

// of spells a value; ok is false where it has no such spelling, or none of its own.
func (s spelling) of(v string) (out string, ok bool) {
	switch s {
	case asIs:
		return v, true
	case asHex:
		return hex.EncodeToString([]byte(v)), true
	case asHexUpper:
		return strings.ToUpper(hex.EncodeToString([]byte(v))), true
	case asBase64:
		return base64.StdEncoding.EncodeToString([]byte(v)), true
	case asBase64URL:
		return base64.URLEncoding.EncodeToString([]byte(v)), true
	case asRawBase64:
		return base64.RawStdEncoding.EncodeToString([]byte(v)), true
	case asRawURL:
		return base64.RawURLEncoding.EncodeToString([]byte(v)), true
	case asBytes:
		b, err := hex.DecodeString(strings.ReplaceAll(v, "-", ""))
		return string(b), err == nil && len(b) >= shortText
	case asUpper:
		return strings.ToUpper(v), strings.ToUpper(v) != v && utf8.ValidString(v)
	case asUndashed:
		return strings.ReplaceAll(v, "-", ""), classOf(v) == ident.UUID
	}
	sum := sha256.Sum256([]byte(v))
	switch s {
	case asHexDigest:
		return hex.EncodeToString(sum[:]), true
	case asTextDigest:
		return base64.StdEncoding.EncodeToString(sum[:]), true
	}
	return string(sum[:]), true
}

// isDigest reports whether the spelling is of the value's SHA-256.
func (s spelling) isDigest() bool { return s == asDigest || s == asHexDigest || s == asTextDigest }

// A part is a value inside another: all of it, a string of the JSON that it is,
// an identifier in its text, what its base64 stands for, or what is in that.
type part struct {
	// "", "json results[0].id", "word 2", "base64", "base64 1.2", "base64 json a"
	at    string
	value string
	id    bool // it looks like an identifier
}

// maxNested bounds how deep JSON and base64 in each other are looked into.
const maxNested = 3

// partsOf takes a value apart.
func partsOf(data []byte) []part { return appendParts(nil, "", data, 0) }

func appendParts(out []part, prefix string, data []byte, depth int) []part {
	if len(data) < shortText || len(data) > maxTraced {
		return out
	}
	s := string(data)
	out = append(out, part{value: s, at: strings.TrimSuffix(prefix, " "), id: classOf(s) != "" || isBinaryID(data)})
	if depth > 0 && !isPrintable(data) {
		out = appendMessageParts(out, prefix, data, depth)
	}
	if !utf8.ValidString(s) {
		return out
	}
	if beginsContainer(s) && depth < maxNested {
		out = appendJSONParts(out, prefix+"json ", data, depth)
	}
	if b, _ := fromBase64(s); len(b) >= shortText && depth < maxNested {
		out = appendParts(out, prefix+"base64 ", b, depth+1)
	}
	if depth > 0 && !isPrintable(data) {
		return out
	}
	return appendWordParts(out, prefix, s)
}

// appendMessageParts appends the parts of a message's fields.
func appendMessageParts(out []part, prefix string, data []byte, depth int) []part {
	t := wire.Parse(data, wire.Options{})
	if t.Err() != nil {
		return out
	}
	for _, l := range protoLeaves(nil, t, 0, nil, "", 1) {
		// random bytes may parse
		if !l.number && (l.inner == 0 || isBinaryID(l.data)) {
			out = appendParts(out, prefix+l.path+" ", l.data, depth+1)
		}
	}
	return out
}

// appendWordParts appends the identifiers in a text, but for one that is all of it.
func appendWordParts(out []part, prefix, s string) []part {
	n := 0
	for w := range wordsOf(s) {
		if c := classOf(w); c == "" || c == ident.Time {
			continue
		}
		if w != s {
			out = append(out, part{prefix + "word " + strconv.Itoa(n), w, true})
		}
		n++
	}
	return out
}

// longDigits is how many digits in a row no count has: one hex id in 2,000 of 8
// bytes is nothing but digits.
const longDigits = 15

// classOf is the class of a value that is an identifier; "" for another.
func classOf(s string) ident.Class {
	if c := ident.Of(s); c != "" {
		return c
	}
	rest := s[strings.LastIndexAny(s, "_-")+1:]
	switch {
	case len(rest) < longDigits || !isDigits(rest):
		return ""
	case rest == s:
		return ident.Hex
	}
	return ident.ID
}

// isBinaryID reports whether bytes may be an identifier: as many as one has, and no text.
func isBinaryID(b []byte) bool {
	switch len(b) {
	case 12, 16, 20, 32, 64:
		return !utf8.Valid(b) || ident.IsBytes(b)
	}
	return false
}

// appendJSONParts takes the values in a JSON object or array apart.
func appendJSONParts(out []part, prefix string, data []byte, depth int) []part {
	root, err := jsontree.Parse(data)
	if err != nil {
		return out
	}
	for _, l := range jsonLeaves(nil, root, "", 1) {
		switch {
		case l.inner > 0:
		case l.number && !l.small && isDigits(l.value[1:]):
			out = append(out, part{at: prefix + l.path, value: l.value[1:]})
		case !l.number:
			out = appendParts(out, prefix+l.path+" ", l.data, depth+1)
		}
	}
	return out
}

// beginsContainer reports whether a text begins as a JSON object or array does.
func beginsContainer(s string) bool {
	s = strings.TrimLeft(s, " \t\r\n")
	return s != "" && (s[0] == '{' || s[0] == '[')
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// fromBase64 decodes a text in the alphabet that it is in; nil where it is none.
func fromBase64(s string) ([]byte, *base64.Encoding) {
	for _, e := range [...]*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding, base64.RawURLEncoding} {
		if b, err := e.Strict().DecodeString(s); err == nil {
			return b, e
		}
	}
	return nil, nil
}

// wordsOf yields the runs of letters, digits and the signs of base64 in a text,
// and of each the part that an identifier can be.
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

// A trace is where a spelling of an issued value came first.
type trace struct {
	down int    // which of Links.down
	path string // of the leaf
	part string // in the leaf
	how  spelling
	id   bool
}

// An innerBinding is a part of a leaf of a frame up that spells a value which
// the server issued.
type innerBinding struct {
	leaf  int
	token string // as captured
	trace
}

// indexTokens adds what frame down j issues to the tokens.
func (l *Links) indexTokens(j int) {
	for k := range l.down[j].leaves {
		v := &l.down[j].leaves[k]
		for _, p := range partsOf(v.data) {
			for _, how := range spellings {
				if len(l.tokens) >= maxTokens || how != asIs && !how.isDigest() && (!p.id || len(p.value) > maxTokenLen) {
					continue
				}
				out, ok := how.of(p.value)
				if _, known := l.tokens[out]; known || !ok || len(out) < shortText && !isDigits(p.value) || how != asIs && isDigits(p.value) || len(out) > maxTokenLen || l.own[out] {
					continue
				}
				l.tokens[out] = trace{j, v.path, p.at, how, p.id || how != asIs}
			}
		}
	}
}

// search finds the issued values inside the leaves of a frame up, and notes
// what the client said first.
func (l *Links) search(h *parsedMessage) (out []innerBinding) {
	for k := 0; k < len(h.leaves); k++ {
		v := &h.leaves[k]
		if v.number || len(v.data) < shortText || len(v.data) > maxTraced || v.inner > 0 && !isPrintable(v.data) {
			continue
		}
		before := len(out)
		out = l.appendInnerBindings(out, k, v.data)
		if len(out) > before {
			k += v.inner
		}
	}
	return out
}

// appendInnerBindings appends the issued values inside leaf k, whose value is data.
func (l *Links) appendInnerBindings(out []innerBinding, k int, data []byte) []innerBinding {
	s, seen := string(data), map[string]bool{}
	for w, whole := range candidates(data) {
		if len(w) < shortText && !(whole && isDigits(w)) || seen[w] {
			continue
		}
		seen[w] = true
		t, ok := l.tokens[w]
		switch {
		case !ok && len(l.own) < maxTokens:
			l.own[w] = true
		case ok && (whole && (t.how != asIs || t.part != "" || w != s) || t.id && w != s):
			out = append(out, innerBinding{k, w, t})
		}
	}
	return out
}

func isPrintable(b []byte) bool {
	if !utf8.Valid(b) {
		return false
	}
	for _, c := range b {
		if c < 0x20 && c != '\n' && c != '\t' && c != '\r' {
			return false
		}
	}
	return true
}

// nestedBindings are the bindings of parts of leaves of up frame i; bound are
// the paths that are bound as a whole.
func (l *Links) nestedBindings(i int, bound map[string]bool) (out []Binding) {
	for _, n := range l.inside[i] {
		leaf := &l.up[i].leaves[n.leaf]
		if bound[leaf.path] {
			continue
		}
		d := &l.down[n.down]
		out = append(out, Binding{
			Path: leaf.path, From: d.from(), FromPath: n.path, Part: n.part, How: string(n.how),
			json: l.up[i].frame.Tree == nil, value: leaf.value, token: n.token, source: *l.target(n.down, n.path),
		})
	}
	return out
}

// live is the token that a live frame has in place of the captured one; ok is
// false where the frame has none.
func (b *Binding) live(from *parsedMessage) (string, bool) {
	for k := range from.leaves {
		v := &from.leaves[k]
		if v.path != b.FromPath {
			continue
		}
		for _, p := range partsOf(v.data) {
			if p.at == b.Part {
				return spelling(b.How).of(p.value)
			}
		}
	}
	return "", false
}

// bindInside puts a live token in the place of the captured one inside a value.
func bindInside(data []byte, b *Binding, fresh string) ([]byte, error) {
	put := func(s string) (string, bool) {
		if strings.Contains(s, b.token) && !isDigits(b.token) {
			return strings.ReplaceAll(s, b.token, fresh), true
		}
		return replacements{b.token: fresh}.in(s, 0)
	}
	if b.json {
		v, ok := edit.FindJSON(data, b.Path)
		if !ok || v.Kind() != jsontree.String {
			return data, nil // an edit has changed what the path led to
		}
		s, changed := put(v.Text())
		if !changed {
			return data, nil
		}
		return v.Replace(jsontree.Quote(s)), nil
	}
	path, err := fieldpath.ParseNumbers(b.Path)
	if err != nil {
		return data, err
	}
	t := wire.Parse(data, wire.Options{})
	at := t.Find(path)
	if len(at) != 1 || t.Node(at[0]).Type != wire.Len {
		return data, nil
	}
	value, changed := put(string(t.Payload(at[0])))
	if !changed {
		return data, nil
	}
	return wire.Splice(t, []wire.Edit{{Op: wire.Set, Node: at[0], Data: []byte(value)}})
}
