package names

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// The shapes of the values that candidates get. Each value is unique, so that an error that repeats
// the value identifies the candidate.
const (
	// asNumber is a number with a fraction, which every type but floats refuses.
	asNumber = iota
	// asText is for candidates that only floats are left for.
	asText
	// asList is for fields that are known to be repeated, maps or messages.
	asList
	// asNulls gives null twice, which protojson refuses for fields of any type.
	asNulls
	// asMap is for fields that are or may be maps.
	asMap
	// asAny is for fields that may be an Any.
	asAny
	// asAnys is for fields that may be a list of Any.
	asAnys
)

// firstValue has as many digits as all later values.
const firstValue = 1_000_000

// valueOf returns the JSON value for candidate i of a batch, in the form as.
func valueOf(i, as int) string {
	n := strconv.Itoa(firstValue+i) + ".5"
	switch as {
	case asText:
		return `"#` + n + `"`
	case asList:
		return "[" + n + "]"
	case asNulls:
		return "null"
	case asMap:
		return `{"0":` + n + "}"
	case asAny:
		return `{"@type":"x/no.` + n + `"}`
	case asAnys:
		return `[{"@type":"x/no.` + n + `"}]`
	}
	return n
}

// object returns the JSON of a request that contains the candidates names with values of the form as
// (asNumber, …). starts are the offsets of the candidates and, as the last one, that of the end.
func (n *namer) object(names []string, as int) (body []byte, starts []int) {
	var b bytes.Buffer
	n.appendOpening(&b)
	for i, name := range names {
		starts = append(starts, b.Len())
		for range 1 + map[int]int{asNulls: 1}[as] {
			b.Write(quoteJSON(name))
			b.WriteByte(':')
			b.WriteString(valueOf(i, as))
			b.WriteByte(',')
		}
	}
	starts = append(starts, b.Len())
	if n.goEnd {
		// the JSON is truncated here on purpose
		b.WriteString(`"`)
		return b.Bytes(), starts
	}
	if len(names) > 0 {
		b.Truncate(b.Len() - 1)
	}

	// Close the objects that lead to the message, then end the batch with a refused value.
	for _, step := range slices.Backward(n.in) {
		b.WriteByte('}')
		if step.list {
			b.WriteByte(']')
		}
	}
	for _, name := range n.endings() {
		if len(n.in) > 0 || !slices.Contains(names, name) {
			if b.Bytes()[b.Len()-1] != '{' {
				b.WriteByte(',')
			}
			b.Write(quoteJSON(name))
			b.WriteString(`:0.5`)
		}
	}
	b.WriteByte('}')
	return b.Bytes(), starts
}

// endings returns the names of request fields with which a batch can end: known fields that accept no
// number.
func (n *namer) endings() []string {
	if len(n.in) == 0 {
		return n.known
	}
	return slices.DeleteFunc(slices.Clone(n.known), func(s string) bool { return plainName(s) == plainName(n.in[0].name) })
}

// appendOpening writes the opening braces, and the field names between them, of the JSON objects that
// enclose the message and of the message itself.
func (n *namer) appendOpening(b *bytes.Buffer) {
	b.WriteByte('{')
	for _, step := range n.in {
		b.Write(quoteJSON(step.name))
		b.WriteByte(':')
		if step.list {
			b.WriteByte('[')
		}
		b.WriteByte('{')
	}
}

// quoteJSON returns a text as a JSON string.
func quoteJSON(s string) []byte {
	b, _ := json.Marshal(s) //nolint:errcheck // text can be written
	return b
}

// at describes the position of the message for the description of a request; "" for the request itself.
func (n *namer) at() string {
	if len(n.in) == 0 {
		return ""
	}
	return " of " + n.namePath()
}

// namePath returns the names that lead to the message, joined by dots.
func (n *namer) namePath() string {
	var names []string
	for _, step := range n.in {
		names = append(names, step.name)
	}
	return strings.Join(names, ".")
}
