package kind

import (
	"bytes"
	"cmp"
	"math"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// Payloads is what was seen of a field's length-delimited payloads, a cost and
// a veto for each hypothesis. A veto is final, and the numbers that it makes
// pointless are zeroed, so that the order of samples does not show.
type Payloads struct {
	N        int64 `json:"n"`
	Empty    int64 `json:"empty,omitempty"`
	Overlong int64 `json:"overlong,omitempty"` // length prefixes longer than need be
	Bytes    int64 `json:"bytes"`
	Scored   int64 `json:"scored,omitempty"` // bytes that the costs are of, each as often as it stands for others
	Uneven   int64 `json:"uneven,omitempty"` // the same with the squares of that
	Shortest int64 `json:"shortest"`
	Longest  int64 `json:"longest"`
	Raw      int64 `json:"raw"`                // cost as arbitrary bytes
	Repeated int64 `json:"repeated,omitempty"` // that of their bytes, and how they repeat

	// Of payloads that are words of 16 bits: their cost as UTF-16, and as numbers.
	NotWide bool  `json:"not_wide,omitempty"`
	UTF16   int64 `json:"utf16,omitempty"`
	Words   int64 `json:"words,omitempty"`

	NotMessage bool `json:"not_message,omitempty"`
	NotMap     bool `json:"not_map,omitempty"` // not entries with distinct keys

	NotText bool  `json:"not_text,omitempty"` // some payload is not UTF-8
	Text    int64 `json:"text,omitempty"`
	Control int64 `json:"control,omitempty"` // payloads with control characters

	NotVarints bool  `json:"not_varints,omitempty"`
	Varints    int64 `json:"varints,omitempty"`
	NotFixed32 bool  `json:"not_fixed32,omitempty"`
	Float32    int64 `json:"float32,omitempty"`
	Int32      int64 `json:"int32,omitempty"`
	NotFixed64 bool  `json:"not_fixed64,omitempty"`
	Float64    int64 `json:"float64,omitempty"`
	Int64      int64 `json:"int64,omitempty"`
	// Numbers is the cost of payloads of which each holds numbers of its own kind, in
	// either order of bytes; zero where it was not looked for.
	Numbers int64 `json:"numbers,omitempty"`

	Tops32 *histogram `json:"tops32,omitempty"` // packed values by their top six bits; nil where there are none
	Tops64 *histogram `json:"tops64,omitempty"`

	Elements *Varints `json:"elements,omitempty"` // of packed varints; nil where there are none

	Ascending  int64 `json:"ascending,omitempty"`  // neighbouring map keys in order
	Descending int64 `json:"descending,omitempty"` // and not

	// Ones and Anys are the bits that all payloads have, and those that any has, while all
	// have one size, of at most maskLen bytes; else they are empty.
	Ones []byte `json:"ones,omitempty"`
	Anys []byte `json:"anys,omitempty"`

	Prefix []byte  `json:"prefix,omitempty"` // all payloads begin so; at most PrefixLen bytes; unset while N is 0
	Values *Sketch `json:"values,omitempty"`
	Forms  Forms   `json:"forms,omitzero"`
}

const (
	PrefixLen = 24
	// costBytes is how much of a payload is judged by its content; the rest is
	// only checked for validity, and taken to cost as much a byte.
	costBytes = 512
)

func newPayloads() *Payloads {
	return &Payloads{Shortest: math.MaxInt64, Values: &Sketch{}}
}

// add enters a payload; message says that it parses as one and is not empty. It is
// scored as if it were weight payloads, or with weight 0 only looked at for what
// refutes a hypothesis.
func (l *Payloads) add(p []byte, message bool, weight int64) {
	if l.N == 0 {
		l.Prefix = bytes.Clone(p[:min(len(p), PrefixLen)])
		l.addMask(p, p, true)
	}
	if weight > 0 {
		l.Values.addBytes(p, weight)
	}
	file := l.see(p)
	n := int64(len(p))
	if n == 0 {
		l.Empty++
		return
	}
	if weight == 0 {
		l.check(p, message)
		return
	}
	l.Scored += weight * n
	l.Uneven = min(l.Uneven+weight*weight*n, maxCount)
	prose := l.addText(p, weight)
	known := prose || message && n >= messageLen
	if !l.NotWide {
		if n%2 != 0 || known {
			l.notWide()
		} else {
			text, numbers := costWide(p)
			l.UTF16 += weight * text
			l.Words += weight * numbers
		}
	}
	raw, repeated := costRaw(p, known)
	if file {
		raw = max(min(raw, costNumbers(p))-costNoFile, 0)
	}
	l.Raw += weight * raw
	l.Repeated += weight * repeated
	if prose || message && n >= messageLen {
		l.notVarints()
		l.notFixed()
		return
	}
	l.addVarints(p, weight)
	l.addFixed(p, weight)
}

// see counts a payload, and its form, and reports whether it is a file.
func (l *Payloads) see(p []byte) (file bool) {
	l.N++
	n := int64(len(p))
	l.Bytes += n
	l.Shortest, l.Longest = min(l.Shortest, n), max(l.Longest, n)
	if len(l.Prefix) > 0 {
		l.addPrefix(p, false)
	}
	if len(l.Ones) > 0 {
		l.addMask(p, p, false)
	}
	return n > 0 && l.Forms.add(p)
}

// check looks for what refutes a hypothesis.
func (l *Payloads) check(p []byte, message bool) {
	if !l.NotWide && (len(p)%2 != 0 || message && len(p) >= messageLen) {
		l.notWide()
	}
	switch {
	case message && len(p) >= messageLen:
		l.notVarints()
		l.notFixed()
		if !l.NotText && !utf8.Valid(p) {
			l.notText()
		}
		return
	case !l.NotVarints && l.Elements.spans(p): // it is ASCII too
	default:
		if !l.NotText && !utf8.Valid(p) {
			l.notText()
		}
		l.addVarints(p, 0)
	}
	if !l.NotFixed32 && len(p)%8 != 0 {
		if l.notFixed64(); len(p)%4 != 0 {
			l.notFixed()
		}
	}
}

// scale is how many times the costs are those of all payloads, about one. Thin is for
// how many bytes each one stands: as few bytes, all alike in that, tell as much.
func (l *Payloads) scale() (scale, thin float64) {
	if l.Scored == 0 {
		return 1, 1
	}
	return float64(l.Bytes) / float64(l.Scored), float64(l.Uneven) / float64(l.Scored)
}

// inAll is the cost of all payloads where that of those that were scored is so much.
func (l *Payloads) inAll(cost int64) int64 {
	scale, _ := l.scale()
	return int64(float64(cost) * scale)
}

// messageLen is the size from which what parses as a message is no list of
// numbers: one list of a few thousand does at ten bytes, and ever fewer do.
const messageLen = 64

// Nobody's numbers look like that much text: so many bytes or more, at no more
// than so much each.
const (
	proseLen  = 32
	proseCost = 3400
)

func (l *Payloads) notWide() { l.NotWide, l.UTF16, l.Words = true, 0, 0 }

func (l *Payloads) notVarints() {
	if !l.NotVarints {
		l.NotVarints = true
		l.Varints, l.Elements = 0, nil
	}
}

func (l *Payloads) notFixed() {
	if !l.NotFixed32 {
		l.NotFixed32 = true
		l.Float32, l.Int32, l.Numbers, l.Tops32 = 0, 0, 0, nil
		l.notFixed64()
	}
}

func (l *Payloads) notFixed64() {
	l.NotFixed64 = true
	l.Float64, l.Int64, l.Tops64 = 0, 0, nil
}

// addPrefix shortens the common prefix to what p shares with it; first says that p is all there is.
func (l *Payloads) addPrefix(p []byte, first bool) {
	if first {
		l.Prefix = bytes.Clone(p[:min(len(p), PrefixLen)])
		return
	}
	i := 0
	for i < len(l.Prefix) && i < len(p) && l.Prefix[i] == p[i] {
		i++
	}
	l.Prefix = l.Prefix[:i]
}

func (l *Payloads) notMap() {
	l.NotMap = true
	l.Ascending, l.Descending = 0, 0
}

func (l *Payloads) notText() {
	l.NotText = true
	l.Text, l.Control = 0, 0
}

// addText enters p as text, and reports whether it is surely that: long, and of usual
// characters, whatever came before it.
func (l *Payloads) addText(p []byte, weight int64) (prose bool) {
	if l.NotText && len(p) < proseLen {
		return false
	}
	if !utf8.Valid(p) {
		l.notText()
		return false
	}
	cost, control := costText(p)
	if !l.NotText {
		if control {
			l.Control++
		}
		l.Text += weight * whole(cost, len(p))
	}
	return len(p) >= proseLen && cost <= proseCost*int64(min(len(p), costBytes))
}

// addVarints enters p as packed varints; with weight 0 only what lies outside of
// the range of those before.
func (l *Payloads) addVarints(p []byte, weight int64) {
	if l.NotVarints {
		return
	}
	if p[len(p)-1] >= 0x80 {
		l.notVarints()
		return
	}
	if l.Elements == nil {
		l.Elements = newElements()
	}
	var cost int64
	for rest := p; len(rest) > 0; {
		if rest[0] < 0x80 {
			n := 0
			if weight > 0 {
				n = l.Elements.countSmall(rest, weight)
				cost += int64(n) * costVarintLen[1]
			} else {
				n = l.Elements.stretch(rest)
			}
			rest = rest[n:]
			continue
		}
		v, n := protowire.ConsumeVarint(rest)
		if n <= 0 || rest[n-1] == 0 {
			l.notVarints()
			return
		}
		if weight > 0 {
			cost += costVarintLen[n]
			l.Elements.count(v, weight)
		} else if v > l.Elements.Max || v < l.Elements.Min {
			l.Elements.count(v, 1)
		}
		rest = rest[n:]
	}
	l.Varints += weight * cost
}

func (l *Payloads) addFixed(p []byte, weight int64) {
	if l.NotFixed32 {
		return // eight bytes are twice four
	}
	if len(p)%4 != 0 {
		l.notFixed()
		return
	}
	if l.Tops32 == nil {
		l.Tops32 = &histogram{}
	}
	head := p[:min(len(p), costBytes)]
	asFloat, asInt := costWidth32(head)
	for b := head; len(b) >= 4; b = b[4:] {
		l.Tops32[b[3]>>2] += weight
	}
	l.Float32 += weight * whole(asFloat, len(p))
	l.Int32 += weight * whole(asInt, len(p))
	own := min(asFloat, asInt)
	if len(p)%8 != 0 {
		l.notFixed64()
	} else {
		asFloat, asInt = costWidth64(head)
		own = min(own, asFloat, asInt)
		if !l.NotFixed64 {
			if l.Tops64 == nil {
				l.Tops64 = &histogram{}
			}
			for b := head; len(b) >= 8; b = b[8:] {
				l.Tops64[b[7]>>2] += weight
			}
			l.Float64 += weight * whole(asFloat, len(p))
			l.Int64 += weight * whole(asInt, len(p))
		}
	}
	l.Numbers += weight * whole(min(own, costBigEndian(head))+costOwnNumbers, len(p))
}

// whole extends the cost of a payload's head to all of its size bytes.
func whole(cost int64, size int) int64 {
	if size <= costBytes {
		return cost
	}
	return int64(float64(cost) * float64(size) / costBytes)
}

func (l *Payloads) merge(o *Payloads) {
	if o.N == 0 {
		return
	}
	l.addPrefix(o.Prefix, l.N == 0)
	l.addMask(o.Ones, o.Anys, l.N == 0)
	l.N += o.N
	l.Empty += o.Empty
	l.Overlong += o.Overlong
	l.Bytes += o.Bytes
	l.Scored += o.Scored
	l.Uneven = min(l.Uneven+o.Uneven, maxCount)
	l.Shortest, l.Longest = min(l.Shortest, o.Shortest), max(l.Longest, o.Longest)
	l.Raw += o.Raw
	l.Repeated += o.Repeated
	if o.NotWide {
		l.notWide()
	} else if !l.NotWide {
		l.UTF16 += o.UTF16
		l.Words += o.Words
	}
	l.NotMessage = l.NotMessage || o.NotMessage
	if l.NotMap || o.NotMap {
		l.notMap()
	} else {
		l.Ascending += o.Ascending
		l.Descending += o.Descending
	}
	if l.NotText || o.NotText {
		l.notText()
	} else {
		l.Text += o.Text
		l.Control += o.Control
	}
	if o.NotVarints {
		l.notVarints()
	} else if !l.NotVarints {
		l.Varints += o.Varints
		if o.Elements != nil {
			if l.Elements == nil {
				l.Elements = newElements()
			}
			l.Elements.merge(o.Elements)
		}
	}
	if o.NotFixed32 {
		l.notFixed()
	} else if !l.NotFixed32 {
		l.Float32 += o.Float32
		l.Int32 += o.Int32
		l.Numbers += o.Numbers
		l.Tops32 = l.Tops32.plus(o.Tops32)
	}
	if o.NotFixed64 {
		l.notFixed64()
	} else if !l.NotFixed64 {
		l.Float64 += o.Float64
		l.Int64 += o.Int64
		l.Tops64 = l.Tops64.plus(o.Tops64)
	}
	l.Values.merge(o.Values)
	l.Forms.merge(&o.Forms)
}

// entryKey returns the encoding of a map entry's key: field 1, then field 2, no more.
func entryKey(p []byte) (key []byte, ok bool) {
	number, typ, n := protowire.ConsumeTag(p)
	if n < 0 || number != 1 {
		return nil, false
	}
	size := protowire.ConsumeFieldValue(number, typ, p[n:])
	if size < 0 {
		return nil, false
	}
	key, p = p[n:n+size], p[n+size:]
	number, typ, n = protowire.ConsumeTag(p)
	if n < 0 || number != 2 {
		return nil, false
	}
	return key, protowire.ConsumeFieldValue(number, typ, p[n:]) == len(p)-n
}

// compareKeys orders two encoded keys as a sorting encoder orders text. Text
// keys begin with their length.
func compareKeys(a, b []byte) int {
	x, n := protowire.ConsumeBytes(a)
	y, m := protowire.ConsumeBytes(b)
	if n == len(a) && m == len(b) {
		return bytes.Compare(x, y)
	}
	v, n := protowire.ConsumeVarint(a)
	w, m := protowire.ConsumeVarint(b)
	if n == len(a) && m == len(b) {
		return cmp.Compare(v, w)
	}
	return bytes.Compare(a, b)
}
