package names

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// Values that candidates get: unique, so that an error that repeats the value
// names the candidate.
const (
	asNumber = iota // no float takes offence
	asText          // only floats are left to
	asList          // of what is known to be no single scalar
	asNulls         // two of them: protojson minds that, whatever the type
	asMap           // of what is a map, or may be one
	asAny           // of what may be an Any
	asAnys          // of what may be a list of them
)

// firstValue makes all values of the same length.
const firstValue = 1_000_000

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

// object is a batch: its JSON, and where each candidate begins, and the end.
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
		b.WriteString(`"`) // and there it breaks off
		return b.Bytes(), starts
	}
	if len(names) > 0 {
		b.Truncate(b.Len() - 1)
	}
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

// endings are the names of the request that can end a batch.
func (n *namer) endings() []string {
	if len(n.in) == 0 {
		return n.known
	}
	return slices.DeleteFunc(slices.Clone(n.known), func(s string) bool { return plainName(s) == plainName(n.in[0].name) })
}

// appendOpening begins the objects that lead to the message, and its own.
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

func quoteJSON(s string) []byte {
	b, _ := json.Marshal(s) //nolint:errcheck // text can be written
	return b
}

// at is how a question says which message it is about.
func (n *namer) at() string {
	if len(n.in) == 0 {
		return ""
	}
	return " of " + n.namePath()
}

func (n *namer) namePath() string {
	var names []string
	for _, step := range n.in {
		names = append(names, step.name)
	}
	return strings.Join(names, ".")
}
