package names

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"unwire/replay/probe"
	"unwire/schema/jsonname"
)

var (
	echoed      = regexp.MustCompile(`\b(1\d{6})\.5\b`)
	endOfNames  = regexp.MustCompile(`(^|[^\d.])0\.5\b`)
	column      = regexp.MustCompile(`\(line 1:(\d+)\)`)
	fieldES     = regexp.MustCompile(`cannot decode field ([\w.]+)\.(\w+) from JSON: ?(.*)`)
	typeES      = regexp.MustCompile(`cannot decode (?:(message|enum) )?([\w.]+) from JSON`)
	twiceES     = regexp.MustCompile(`cannot decode field [\w.]+\.(\w+) from JSON: set multiple times`)
	oneofES     = regexp.MustCompile(`oneof set multiple times by \w+ and (\w+)|multiple keys for oneof "\w+" present: "[^"]*", "([^"]*)"`)
	expected    = regexp.MustCompile(`expected (?:number |bigint )?\(?(\w+)\)?`)
	familyES1   = regexp.MustCompile(`invalid (u?int) (32)|(u?int)(64) invalid`)
	fieldGo     = regexp.MustCompile(`invalid value for (\w+) field (.+?): `)
	unknownName = regexp.MustCompile(`(?:unknown field "([^"]*)"|: key "([^"]*)" is unknown)`)
	tokenGo     = regexp.MustCompile(`unexpected token (\S)`)
)

// What an error is about, if it is about no candidate.
const (
	unclear = -1
	atEnd   = -2 // all candidates were passed
)

// candidateOf finds the candidate that an error is about; starts are where each begins,
// and where the last ends.
func candidateOf(message string, names []string, starts []int) int {
	if m := echoed.FindStringSubmatch(message); m != nil {
		if i, err := strconv.Atoi(m[1]); err == nil && i-firstValue < len(starts)-1 {
			return i - firstValue
		}
	}
	if m := column.FindStringSubmatch(message); m != nil {
		at, err := strconv.Atoi(m[1])
		if err != nil || len(starts) == 0 || at-1 < starts[0] {
			return unclear
		}
		i, exact := slices.BinarySearch(starts, at-1)
		if !exact {
			i--
		}
		if i >= len(starts)-1 {
			return atEnd
		}
		return i
	}
	for _, about := range []*regexp.Regexp{twiceES, oneofES} {
		if m := about.FindStringSubmatch(message); m != nil {
			return lastOf(names, m[len(m)-1]+m[1])
		}
	}
	if m := fieldES.FindStringSubmatch(message); m != nil && !endOfNames.MatchString(message) && !wellKnownType(m[1]) {
		return lastOf(names, m[2])
	}
	if endOfNames.MatchString(message) || strings.Contains(message, "unexpected EOF") {
		return atEnd
	}
	return unclear
}

// lastOf finds a name in the form that it was asked in; where it was in two,
// the last.
func lastOf(names []string, name string) int {
	at := unclear
	for i, s := range names {
		if s == name || jsonname.Of(name) == s {
			at = i
		}
	}
	return at
}

// conflict reports whether an error is about a field that came twice, or came
// after another of its oneof: it says nothing of the field's kind.
func conflict(message string) bool {
	return strings.Contains(message, "set multiple times") || strings.Contains(message, "multiple keys for oneof") ||
		strings.Contains(message, "is already set") || strings.Contains(message, "duplicate field")
}

// readES reads what protobuf-es says of a candidate of a message of a type,
// which may not be known.
func readES(name, message, of string, as int) (f namedField, also string) {
	f.Name = name
	switch m := fieldES.FindStringSubmatch(message); {
	case m != nil && m[1] != of && wellKnownType(m[1]): // of a wrapper in it
		f.Type, f.Kind, f.Label = m[1], "message", "singular"
	case m != nil:
		also, f.Name = m[2], m[2]
		f.Kind, f.Type, f.Label, f.family = kindES(m[3])
		f.composed = f.Label == "repeated" || f.Label == "map"
		if as == asText && f.family == "" && f.Type == "" && f.Label != "repeated" && f.Label != "map" {
			f.family = "float" // it took a number
		}
	default:
		if m := typeES.FindStringSubmatch(message); m != nil {
			f.Type, f.Kind, f.Label = m[2], "message", "singular"
			if m[1] == "enum" {
				f.Kind, f.enum = "varint", m[2]
			}
		}
	}
	switch {
	case as == asMap:
		// what is told is of a value
		f = namedField{Field: probe.Field{Name: f.Name}, enum: f.enum}
	case as != asList:
	case strings.HasSuffix(message, "from JSON: array"):
		f = namedField{Field: probe.Field{Name: f.Name}} // it is no list
	default:
		f.Label = "repeated" // what is told is of an item
	}
	f.Class = classOfType(f.Kind, f.Type)
	return f, also
}

// kindES reads the kind that an error expects. protobuf-es 1 tells less.
func kindES(message string) (kind, typ, label, family string) {
	if m := familyES1.FindStringSubmatch(message); m != nil {
		return "", "", "singular", m[1] + m[2] + m[3] + m[4]
	}
	m := expected.FindStringSubmatch(message)
	if m == nil {
		return "", "", "", ""
	}
	switch m[1] {
	case "Array":
		return "", "", "repeated", ""
	case "object":
		return "message", "", "map", ""
	case "string":
		return "string", "string", "singular", ""
	case "Uint8Array":
		return "bytes", "bytes", "singular", ""
	case "boolean", "bool":
		return "varint", "bool", "singular", ""
	case "float32":
		return "fixed32", "float", "singular", ""
	case "float64":
		return "fixed64", "double", "singular", ""
	case "int32", "uint32", "int64", "uint64":
		return "", "", "singular", m[1]
	}
	return "", "", "singular", ""
}

// readGo reads what protojson says of a candidate.
//
// Shape: an error in a wrapper calls its field "value", which a field may be
// called, too: then nothing is said.
func readGo(name, message string, as int) (f namedField, also string) {
	f.Name = name
	m := fieldGo.FindStringSubmatch(message)
	token := tokenGo.FindStringSubmatch(message)
	switch {
	case as == asAny, as == asAnys:
		if noType.MatchString(message) {
			f.Type = anyType
		}
	case as == asMap:
		if m != nil && m[1] == "enum" && m[2] == "value" {
			f.enum = m[1]
		}
	case m != nil && m[2] == "value":
	case m != nil:
		f.Type, f.Label, also = m[1], "singular", m[2]
		if f.Type == "enum" {
			f.enum = f.Type
		}
		if as == asList {
			f.Label = "repeated"
		}
		f.Class = classOfScalar(f.Type)
		f.Kind = kindOf(f.Class, f.Type)
	case as == asNulls || token == nil:
	case as != asList:
		f.composed = true
	case token[1] == "[":
		// or a map, which is one on the wire
		f.Class, f.Kind = probe.Message, "message"
	default:
		f.Class, f.Kind, f.Label = probe.Message, "message", "repeated"
	}
	return f, also
}

func classOfType(kind, typ string) probe.Class {
	switch kind {
	case "message", "fixed32", "fixed64", "varint":
		return probe.Class(kind)
	case "string", "bytes":
		return probe.Len
	}
	return classOfScalar(typ)
}

func classOfScalar(typ string) probe.Class {
	switch typ {
	case "string", "bytes":
		return probe.Len
	case "fixed32", "sfixed32", "float":
		return probe.Fixed32
	case "fixed64", "sfixed64", "double":
		return probe.Fixed64
	case "int32", "int64", "uint32", "uint64", "sint32", "sint64", "bool", "enum":
		return probe.Varint
	}
	return ""
}

func kindOf(c probe.Class, typ string) string {
	if c == probe.Len {
		return typ
	}
	return string(c)
}

// typeIn is the type that is left of a family once the class is known; "" is none.
func typeIn(family string, c probe.Class) string {
	switch family + " " + string(c) {
	case "int32 fixed32":
		return "sfixed32"
	case "int64 fixed64":
		return "sfixed64"
	case "uint32 fixed32":
		return "fixed32"
	case "uint64 fixed64":
		return "fixed64"
	case "uint32 varint", "uint64 varint":
		return family
	case "float fixed32":
		return "float"
	case "float fixed64":
		return "double"
	}
	return ""
}

// classesOf are those that a family can have; none: any.
func classesOf(family string) []probe.Class {
	switch family {
	case "int32", "uint32":
		return []probe.Class{probe.Varint, probe.Fixed32}
	case "int64", "uint64":
		return []probe.Class{probe.Varint, probe.Fixed64}
	case "float":
		return []probe.Class{probe.Fixed32, probe.Fixed64}
	}
	return nil
}
