package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"unwire/replay"
)

var wholeMessage = regexp.MustCompile(`cannot decode (message )?([\w.]+) from JSON`)

// requestType asks with JSON that ends after its first brace, which no parser
// takes: protobuf-es names the request's type, and each version in its own words.
func requestType(ctx context.Context, c *client, res *Result) error {
	a, err := c.send(ctx, "the request's type: JSON that ends early", "json", []byte("{"))
	if err != nil {
		return err
	}
	m := wholeMessage.FindStringSubmatch(a.message)
	if m == nil {
		return nil
	}
	res.RequestType = strings.TrimPrefix(m[2], ".")
	res.Runtime = ES1
	if m[1] != "" {
		res.Runtime = ES2
	}
	return nil
}

// A namer asks for JSON names: every candidate gets a value of a type that no
// field of that name takes, all in one object, and the error names the first.
type namer struct {
	c          *client
	candidates []string
	known      string // of a field that ends a batch; "" where none is known
	goEnd      bool   // the parser reads as it goes, so JSON that breaks off ends a batch
	found      []Field
	index      map[string]int // of found, by candidate
}

// Values that candidates get: unique, so that an error that repeats the value
// names the candidate.
const (
	asNumber = iota // no float takes offence
	asText          // only floats are left to
	asList          // of what is known to be no single scalar
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
	}
	return n
}

// object is a batch: its JSON, and where each value begins.
func (n *namer) object(names []string, as int) (body []byte, starts []int) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, name := range names {
		key, _ := json.Marshal(name)
		b.Write(key)
		b.WriteByte(':')
		starts = append(starts, b.Len())
		b.WriteString(valueOf(i, as))
		b.WriteByte(',')
	}
	if n.goEnd {
		b.WriteString(`"`) // and there it breaks off
		return b.Bytes(), starts
	}
	if n.known == "" {
		b.Truncate(b.Len() - 1)
		b.WriteByte('}')
		return b.Bytes(), starts
	}
	key, _ := json.Marshal(n.known)
	b.Write(key)
	b.WriteString(`:0.5}`)
	return b.Bytes(), starts
}

var (
	echoed   = regexp.MustCompile(`\b(1\d{6})\.5`)
	column   = regexp.MustCompile(`\(line 1:(\d+)\)`)
	fieldES  = regexp.MustCompile(`cannot decode field ([\w.]+)\.(\w+) from JSON`)
	typeES   = regexp.MustCompile(`cannot decode (message|enum) ([\w.]+) from JSON`)
	expected = regexp.MustCompile(`expected (?:number )?\(?(\w+)\)?`)
	invalid  = regexp.MustCompile(`invalid (u?int) 32`)
	fieldGo  = regexp.MustCompile(`invalid value for (\w+) field (\w+):`)
)

// hit finds the candidate that an error is about; -1 is none.
func hit(message string, starts []int) int {
	if m := echoed.FindStringSubmatch(message); m != nil {
		if i, err := strconv.Atoi(m[1]); err == nil && i-firstValue < len(starts) {
			return i - firstValue
		}
	}
	if m := column.FindStringSubmatch(message); m != nil {
		if at, err := strconv.Atoi(m[1]); err == nil {
			if i, ok := slices.BinarySearch(starts, at-1); ok {
				return i
			}
		}
	}
	return -1
}

// ask asks for the names among candidates until a batch has none.
func (n *namer) ask(ctx context.Context, as int, each func(name string, a *answer)) error {
	left := slices.Clone(n.candidates)
	for {
		body, starts := n.object(left, as)
		a, err := n.c.send(ctx, fmt.Sprintf("%d names", len(left)), "json", body)
		if a != nil && a.Accepted && !n.goEnd && n.known == "" {
			return errNoName
		}
		if err != nil {
			return err
		}
		if !a.parser {
			return &stopError{fmt.Sprintf("the answer to request %d tells nothing of the JSON parser: %s", n.c.requests, a.brief())}
		}
		i := hit(a.message, starts)
		if i < 0 {
			return nil
		}
		name := left[i]
		each(name, a)
		left = slices.DeleteFunc(left, func(s string) bool { return plainName(s) == plainName(name) })
	}
}

// errNoName is a first batch without a name that exists.
var errNoName = errors.New("none of the names exists")

// drop takes the names that were found out of the candidates.
func (n *namer) drop() {
	taken := map[string]bool{}
	for name := range n.index {
		taken[plainName(name)] = true
	}
	n.candidates = slices.DeleteFunc(n.candidates, func(s string) bool { return taken[plainName(s)] })
}

func (n *namer) enter(candidate string, f Field, a *answer) {
	f.Evidence = []string{fmt.Sprintf("request %d: %s", n.c.requests, quote(a.message))}
	n.index[candidate] = len(n.found)
	n.found = append(n.found, f)
}

// plainName is the same for all forms of a name: page_size, pageSize.
func plainName(s string) string {
	return strings.ToLower(strings.ReplaceAll(s, "_", ""))
}

// maxNames bounds a batch: its values have seven digits.
const maxNames = 100_000

func newNamer(c *client, o *Options) *namer {
	n := &namer{c: c, known: o.Known, index: map[string]int{}}
	seen := map[string]bool{o.Known: true}
	for _, name := range o.Names {
		if name != "" && !seen[name] && len(n.candidates) < maxNames {
			seen[name] = true
			n.candidates = append(n.candidates, name)
		}
	}
	return n
}

// namesES asks a protobuf-es server for names of the request's fields.
//
// Shape: it reads the whole of an object, so a batch has to end with a name
// that exists. Where none is known, the first batch runs the handler if no
// candidate exists: that is risked on this machine alone, unless allowed.
func namesES(ctx context.Context, c *client, o *Options, res *Result) error {
	n := newNamer(c, o)
	if len(n.candidates) == 0 {
		return nil
	}
	if n.known == "" && !o.AllowExecute && replay.CheckTarget(c.url, false, nil) != nil {
		res.note("names were not asked for: with no name that is known to exist, a request without a hit would run the handler")
		return nil
	}
	each := func(name string, a *answer) {
		f := Field{Name: name}
		if m := fieldES.FindStringSubmatch(a.message); m != nil {
			f.Name = m[2]
			if res.RequestType == "" {
				res.RequestType = m[1]
			}
			f.Kind, f.Type, f.Label = kindES(a.message)
		} else if m := typeES.FindStringSubmatch(a.message); m != nil {
			f.Type, f.Kind = m[2], m[1]
			if m[1] == "enum" {
				f.Kind = "varint"
			}
		}
		f.Class = classOfType(f.Kind, f.Type)
		n.enter(name, f, a)
	}
	err := n.ask(ctx, asNumber, func(name string, a *answer) {
		n.known = name
		each(name, a)
	})
	if err == errNoName {
		res.note("none of the names exists: the request without a hit was taken, and may have run the handler")
		return nil
	}
	if err == nil {
		n.drop()
		err = n.ask(ctx, asText, func(name string, a *answer) {
			each(name, a)
			if f := &n.found[len(n.found)-1]; f.Type == "" && fieldES.MatchString(a.message) {
				f.Evidence = append(f.Evidence, "a number was taken, a text was not: float or double")
			}
		})
	}
	n.report(res, true)
	return err
}

// kindES reads the kind that an error expects. protobuf-es 1 tells less.
func kindES(message string) (kind, typ, label string) {
	if m := invalid.FindStringSubmatch(message); m != nil {
		return "", "", "" // int32, sint32 and sfixed32 read alike
	}
	m := expected.FindStringSubmatch(message)
	if m == nil {
		return "", "", ""
	}
	switch m[1] {
	case "Array":
		return "", "", "repeated"
	case "object":
		return "message", "", "map"
	case "string":
		return "string", "string", "singular"
	case "Uint8Array":
		return "bytes", "bytes", "singular"
	case "boolean", "bool":
		return "varint", "bool", "singular"
	case "float32":
		return "fixed32", "float", "singular"
	case "float64":
		return "fixed64", "double", "singular"
	}
	return "", "", "singular"
}

func classOfType(kind, typ string) Class {
	switch kind {
	case "message", "fixed32", "fixed64", "varint":
		return Class(kind)
	case "string", "bytes":
		return Len
	}
	return classOfScalar(typ)
}

func classOfScalar(typ string) Class {
	switch typ {
	case "string", "bytes":
		return Len
	case "fixed32", "sfixed32", "float":
		return Fixed32
	case "fixed64", "sfixed64", "double":
		return Fixed64
	case "int32", "int64", "uint32", "uint64", "sint32", "sint64", "bool", "enum":
		return Varint
	}
	return ""
}

// maxLists bounds the requests that tell lists from messages.
const maxLists = 25

// namesGo asks protojson for names, with the kinds that it tells.
//
// Shape: it reads as it goes, so a batch ends where its JSON breaks off.
func namesGo(ctx context.Context, c *client, o *Options, res *Result) error {
	if res.Runtime != ConnectGo {
		return nil
	}
	n := newNamer(c, o)
	n.goEnd = true
	if len(n.candidates) == 0 {
		return nil
	}
	var composed []string
	each := func(name string, a *answer) {
		f := Field{Name: name}
		m := fieldGo.FindStringSubmatch(a.message)
		switch {
		case m == nil:
			composed = append(composed, name) // a message, a list or a map
		case plainName(m[2]) == plainName(name):
			f.Type = m[1]
			f.Class, f.Label = classOfScalar(f.Type), "singular"
			f.Kind = kindOf(f.Class, f.Type)
		}
		n.enter(name, f, a)
	}
	err := n.ask(ctx, asNumber, each)
	if err == nil {
		n.drop()
		err = n.ask(ctx, asText, each)
	}
	if err == nil && len(composed) > 0 && len(composed) <= maxLists {
		n.candidates = composed
		err = n.ask(ctx, asList, func(name string, a *answer) {
			f := &n.found[n.index[name]]
			f.Evidence = append(f.Evidence, fmt.Sprintf("request %d: %s", n.c.requests, quote(a.message)))
			switch m := fieldGo.FindStringSubmatch(a.message); {
			case m != nil && plainName(m[2]) == plainName(name):
				f.Type, f.Label = m[1], "repeated"
				f.Class = classOfScalar(f.Type)
				f.Kind = kindOf(f.Class, f.Type)
			case strings.Contains(a.message, "unexpected token ["):
				f.Class, f.Kind = Message, "message" // or a map, which is one on the wire
			case echoed.MatchString(a.message):
				f.Class, f.Kind, f.Label = Message, "message", "repeated"
			}
		})
	}
	n.report(res, false)
	return err
}

func kindOf(c Class, typ string) string {
	if c == Len {
		return typ
	}
	return string(c)
}

// report joins names to numbers where only one of each can be meant, and lists
// the others without a number.
//
// Shape: complete says that every field's number is known.
func (n *namer) report(res *Result, complete bool) {
	for _, f := range n.found {
		if i := joins(res.Fields, n.found, f, complete); i >= 0 {
			at := &res.Fields[i]
			at.Name, at.Type = f.Name, f.Type
			if at.Kind == "" {
				at.Kind = f.Kind
			}
			if at.Label == "" {
				at.Label = f.Label
			}
			at.Evidence = append(append(at.Evidence, f.Evidence...), "no other number and no other name can be meant")
			continue
		}
		res.Fields = append(res.Fields, f)
	}
}

// joins finds the one field with a number, of the request itself, that a name
// can be of; -1 where there is doubt.
func joins(fields, names []Field, f Field, complete bool) int {
	for i := range fields {
		if g := &fields[i]; g.Path == "" && g.Number != 0 && g.Name != "" && plainName(g.Name) == plainName(f.Name) {
			return i
		}
	}
	if f.Class == "" || !complete && f.Kind != "string" && f.Kind != "message" {
		return -1
	}
	at := -1
	for i := range fields {
		g := &fields[i]
		switch {
		case g.Path != "" || g.Number == 0:
		case g.Class == "":
			return -1
		case g.Class == f.Class && at >= 0:
			return -1
		case g.Class == f.Class:
			at = i
		}
	}
	for i := range names {
		if names[i].Name != f.Name && (names[i].Class == f.Class || names[i].Class == "") {
			return -1
		}
	}
	return at
}
