package names

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"unwire/replay/probe"
	"unwire/schema/jsonname"
)

var (
	// Patterns in the error messages of JSON parsers.
	echoed     = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\b(1\d{6})\.5\b`) })
	endOfNames = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(^|[^\d.])0\.5\b`) })
	column     = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\(line 1:(\d+)\)`) })
	fieldES    = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`cannot decode field ([\w.]+)\.(\w+) from JSON: ?(.*)`)
	})
	typeES = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`cannot decode (?:(message|enum) )?([\w.]+) from JSON`)
	})
	twiceES = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`cannot decode field [\w.]+\.(\w+) from JSON: set multiple times`)
	})
	oneofES = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`oneof set multiple times by \w+ and (\w+)|multiple keys for oneof "\w+" present: "[^"]*", "([^"]*)"`)
	})
	expected    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`expected (?:number |bigint )?\(?(\w+)\)?`) })
	familyES1   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`invalid (u?int) (32)|(u?int)(64) invalid`) })
	fieldGo     = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`invalid value for (\w+) field (.+?): `) })
	unknownName = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?:unknown field "([^"]*)"|: key "([^"]*)" is unknown)`)
	})
	tokenGo = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`unexpected token (\S)`) })
)

// Results of candidateOf for errors that are not about a candidate.
const (
	unclear = -1
	// atEnd means that the parser accepted all candidates.
	atEnd = -2
)

// candidateOf returns the index of the candidate that an error message is about, or atEnd or unclear.
// starts are the offsets of the candidates and of the end in the request.
func candidateOf(message string, names []string, starts []int) int {
	// The error repeats the value, which is unique.
	if m := echoed().FindStringSubmatch(message); m != nil {
		if i, err := strconv.Atoi(m[1]); err == nil && i-firstValue < len(starts)-1 {
			return i - firstValue
		}
	}

	// protojson gives the column, which is looked up among the offsets.
	if m := column().FindStringSubmatch(message); m != nil {
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

	// protobuf-es names the field.
	for _, about := range []*regexp.Regexp{twiceES(), oneofES()} {
		if m := about.FindStringSubmatch(message); m != nil {
			return lastOf(names, m[len(m)-1]+m[1])
		}
	}
	if m := fieldES().FindStringSubmatch(message); m != nil && !endOfNames().MatchString(message) && !wellKnownType(m[1]) {
		return lastOf(names, m[2])
	}
	if endOfNames().MatchString(message) || strings.Contains(message, "unexpected EOF") {
		return atEnd
	}
	return unclear
}

// lastOf returns the index of the last candidate that is name, or another spelling of it; -1 if there
// is none.
func lastOf(names []string, name string) int {
	at := unclear
	for i, s := range names {
		if s == name || jsonname.Of(name) == s {
			at = i
		}
	}
	return at
}

// conflict reports whether an error means that a field occurs twice, or together with another field of
// its oneof. Such an error does not reveal the field's kind.
func conflict(message string) bool {
	return strings.Contains(message, "set multiple times") || strings.Contains(message, "multiple keys for oneof") ||
		strings.Contains(message, "is already set") || strings.Contains(message, "duplicate field")
}

// readES interprets an error of protobuf-es about the candidate name, which was sent with a value of
// the form as. of is the type of the message, if known. also is the declared name if the error gives
// it.
func readES(name, message, of string, as int) (f namedField, also string) {
	f.Name = name
	switch m := fieldES().FindStringSubmatch(message); {
	// about a field of a wrapper message
	case m != nil && m[1] != of && wellKnownType(m[1]):
		f.Type, f.Kind, f.Label = m[1], "message", "singular"
	case m != nil:
		also, f.Name = m[2], m[2]
		f.Kind, f.Type, f.Label, f.family = kindES(m[3])
		f.composed = f.Label == "repeated" || f.Label == "map"
		if as == asText && f.family == "" && f.Type == "" && f.Label != "repeated" && f.Label != "map" {
			// it accepted a number
			f.family = "float"
		}
	default:
		if m := typeES().FindStringSubmatch(message); m != nil {
			f.Type, f.Kind, f.Label = m[2], "message", "singular"
			if m[1] == "enum" {
				f.Kind, f.enum = "varint", m[2]
			}
		}
	}
	switch {
	case as == asMap:
		f = f.mapOf(message)
	case as != asList:
	case strings.HasSuffix(message, "from JSON: array"):
		// it is not repeated
		f = namedField{Field: probe.Field{Name: f.Name}}
	default:
		// the error is about an item
		f.Label = "repeated"
	}
	f.Class = classOfType(f.Kind, f.Type)
	return f, also
}

// mapOf converts f, as read from an error about a map's value, to the map field.
func (f namedField) mapOf(message string) namedField {
	g := namedField{Field: probe.Field{Name: f.Name}, enum: f.enum}
	about := fieldES().FindStringSubmatch(message)
	switch {
	// 1000000.5 is refused by a message or an enum, which are named
	case f.Type != "" && about == nil, f.enum != "":
		g.MapValue = f.Type
	case about == nil || !strings.HasPrefix(about[3], "map entry"):
		// it is about the key, or there is no map
	case f.Type != "":
		g.MapValue = f.Type
	default:
		g.MapFamily = f.family
	}
	return g
}

// kindES interprets the kind that an error of protobuf-es expects. protobuf-es 1 is less specific;
// family then is a group of types, such as "int32".
func kindES(message string) (kind, typ, label, family string) {
	if m := familyES1().FindStringSubmatch(message); m != nil {
		return "", "", "singular", m[1] + m[2] + m[3] + m[4]
	}

	// protobuf-es 2 names the JavaScript type that it expects, which determines the protobuf type.
	m := expected().FindStringSubmatch(message)
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

// readGo interprets an error of protojson about the candidate name, which was sent with a value of the
// form as. also is the declared name if the error gives it.
//
// Shape: an error in a wrapper message calls its field "value". A field may have that name too, so such
// an error is ignored.
func readGo(name, message string, as int) (f namedField, also string) {
	f.Name = name
	m := fieldGo().FindStringSubmatch(message)
	token := tokenGo().FindStringSubmatch(message)
	switch {
	case as == asAny, as == asAnys:
		if noType().MatchString(message) {
			f.Type = anyType
		}
	case as == asMap:
		// A map names its value "value", and the error repeats it. A wrapper message also names its
		// field so, but refuses the whole object.
		if m != nil && m[2] == "value" && echoed().MatchString(message) {
			f.Label = "map"
			switch m[1] {
			case "bool", "string", "bytes", "int32", "int64", "uint32", "uint64":
				// or the wrapper of this type
				f.MapFamily = m[1]
			case "enum":
				f.enum, f.MapValue = m[1], m[1]
			default:
				f.MapValue = m[1]
			}
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
		// It may also be a map, which is a repeated message on the wire.
		f.Class, f.Kind = probe.Message, "message"
	default:
		f.Class, f.Kind, f.Label = probe.Message, "message", "repeated"
	}
	return f, also
}

// classOfType returns the class of a field of this kind or, if that is not specific, of this scalar
// type.
func classOfType(kind, typ string) probe.Class {
	switch kind {
	case "message", "fixed32", "fixed64", "varint":
		return probe.Class(kind)
	case "string", "bytes":
		return probe.Len
	}
	return classOfScalar(typ)
}

// classOfScalar returns the class of a scalar type.
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

// kindOf returns the kind of a field of class c and scalar type typ.
func kindOf(c probe.Class, typ string) string {
	if c == probe.Len {
		return typ
	}
	return string(c)
}

// typeIn returns the only scalar type that a JSON parser describes by the word family (such as "uint32") and that has
// the wire format c, for example fixed32; "" if there is none, or several.
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

// classesOf returns the classes of the types in a family; nil means any class.
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
