package messages

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"unwire/schema"
	"unwire/schema/infer"
	"unwire/schema/infer/jsonshape"
)

// The well-known types for JSON values of varying structure, and their file.
const (
	structFile = "google/protobuf/struct.proto"
	valueType  = "google.protobuf.Value"
	listType   = "google.protobuf.ListValue"
	structType = "google.protobuf.Struct"
)

// Write adds a message type for each group of JSON messages in the evidence to the inferred definitions. pkg is
// their package; "" stands for the package of messages that belong to no method.
//
// Errors: the definitions do not compile, which is a defect of unwire.
func Write(in *infer.Inferred, ev *infer.Evidence, pkg string) error {
	pkg = cmp.Or(pkg, "inferred")
	w := &writer{taken: map[string]bool{}}
	if in.Schema != nil {
		w.isTaken = func(name string) bool { return in.Schema.Message(pkg+"."+name) != nil }
	}

	// Each group becomes a message type, with a list of its fields for the evidence.
	groups := ev.JSON().Groups()
	for i := range groups {
		g := &groups[i]
		m := infer.JSONMessage{Message: pkg + "." + w.root(g), Place: g.Place, Messages: g.Shape.Objects, Member: g.Member, Value: g.Value, Fields: w.fields}
		in.JSON, w.fields = append(in.JSON, m), nil
	}

	if w.text.Len() == 0 {
		return nil
	}
	path := strings.ReplaceAll(pkg, ".", "/") + "/inferred.proto"
	if in.Files == nil {
		in.Files = map[string]string{}
	}
	in.Files[path] = w.appendTo(in.Files[path], pkg)
	var err error
	if in.Schema, err = schema.FromTexts(in.Files); err != nil {
		return fmt.Errorf("messages: the inferred definitions do not compile, which is a bug in unwire: %w", err)
	}
	return nil
}

// A writer writes the message types of JSON messages as .proto text.
type writer struct {
	// text is the source text of the definitions.
	text strings.Builder
	// taken are the names of types already used in the file.
	taken map[string]bool
	// isTaken, if not nil, reports whether the inferred definitions use a name.
	isTaken func(name string) bool
	// imports is set if the well-known types must be imported.
	imports bool

	// fields are the fields of the current message type.
	fields []infer.JSONField
}

// appendTo returns file, the text of a .proto file, with the written definitions appended. If file is "", it
// begins a new file for the package pkg.
func (w *writer) appendTo(file, pkg string) string {
	head := "package " + pkg + ";\n\n"
	if file == "" {
		file = "// Inferred from traffic by unwire.\nsyntax = \"proto3\";\n\n" + head
	}
	// The import follows the package statement.
	if w.imports && !strings.Contains(file, strconv.Quote(structFile)) {
		file = strings.Replace(file, head, head+"import "+strconv.Quote(structFile)+";\n\n", 1)
	}
	return strings.TrimRight(file, "\n") + "\n\n" + strings.TrimRight(w.text.String(), "\n") + "\n"
}

// root writes the message type for a group of JSON messages and returns its name.
func (w *writer) root(g *jsonshape.Group) string {
	name := g.Name + camel(g.Value)
	free := name
	for i := 2; w.taken[free] || w.isTaken != nil && w.isTaken(free); i++ {
		free = fmt.Sprintf("%s_%d", name, i)
	}
	w.taken[free] = true
	fmt.Fprintf(&w.text, "// %s in JSON, %s.\n", counted(g.Shape.Objects), comment(g.Place))
	if g.Member != "" {
		fmt.Fprintf(&w.text, "// Its %s is %q.\n", g.Member, g.Value)
	}
	w.text.WriteString("// JSON has no field numbers. unwire numbered the fields in the order of their names.\n")
	w.message(free, g.Shape, "", "")
	w.text.WriteByte('\n')
	return free
}

// counted returns "1 message" or "n messages".
func counted(n int64) string {
	if n == 1 {
		return "1 message"
	}
	return fmt.Sprintf("%d messages", n)
}

// comment makes text from traffic safe for a one-line comment in a .proto file.
func comment(s string) string {
	q := strconv.QuoteToASCII(s)
	return q[1 : len(q)-1]
}

// message writes the message type called name for the objects with the shape sh, and the types nested in it.
// path is the path of JSON members to the objects.
func (w *writer) message(name string, sh *jsonshape.Shape, indent, path string) {
	fmt.Fprintf(&w.text, "%smessage %s {\n", indent, name)
	inner := indent + "  "
	taken := map[string]bool{}
	jsonNames := map[string]bool{}
	number := 0
	for _, member := range slices.Sorted(maps.Keys(sh.Members)) {
		m := sh.Members[member]

		number++
		field := uniqueIn(taken, fieldName(member))
		at := path + member
		w.fields = append(w.fields, infer.JSONField{Path: at, Name: field, Number: number, Seen: m.Seen, Of: sh.Objects})
		mine := len(w.fields) - 1
		typ, repeated := w.typeOf(m, member, taken, inner, at+".")
		w.fields[mine].Type, w.fields[mine].Repeated = typ, repeated

		// The field is written after its type, so that nested types precede it.
		fmt.Fprintf(&w.text, "%s// Seen in %d of %s.\n", inner, m.Seen, infer.Plural(sh.Objects, "message"))
		label := ""
		if repeated {
			label = "repeated "
		}
		// A name that protobuf would convert to another one needs the option json_name.
		option := ""
		if defaultJSONName(field) != member && !jsonNames[member] && isPlainText(member) {
			option = " [json_name = " + strconv.QuoteToASCII(member) + "]"
		}
		jsonNames[member] = true
		fmt.Fprintf(&w.text, "%s%s%s %s = %d%s;\n", inner, label, typ, field, number, option)
	}
	if sh.Open {
		fmt.Fprintf(&w.text, "%s// The message has more members than this list.\n", inner)
	}
	fmt.Fprintf(&w.text, "%s}\n", indent)
}

// typeOf returns the protobuf type for the values of the member m, and writes the message type for objects.
// name is the name of such a type, and taken the names in use. repeated is set if the values are arrays.
func (w *writer) typeOf(m *jsonshape.Member, name string, taken map[string]bool, indent, path string) (typ string, repeated bool) {
	values := m.Kinds
	kinds := 0

	// Null does not count: every field may be absent.
	for _, n := range []int64{values.Bool, values.Number, values.String, values.Array, values.Object} {
		if n > 0 {
			kinds++
		}
	}

	// Values of several kinds have no common type.

	if kinds != 1 {
		w.imports = true
		return valueType, false
	}

	switch {
	case values.String > 0:
		return "string", false
	case values.Bool > 0:
		return "bool", false
	case values.Number > 0 && m.Fractional:
		return "double", false
	case values.Number > 0:
		return "int64", false
	case values.Object > 0:
		// An object with arbitrary keys has no fixed fields.
		if m.Object.Open || len(m.Object.Members) == 0 {
			w.imports = true
			return structType, false
		}
		free := uniqueIn(taken, cmp.Or(camel(name), "Object"))
		if free[0] >= '0' && free[0] <= '9' {
			free = uniqueIn(taken, "Object"+free)
		}
		w.message(free, m.Object, indent, path)
		return free, false
	}

	// The elements of an array need a single type that is no array itself.
	if m.Items == nil || m.Items.Seen == 0 || m.Items.Kinds.Array > 0 || m.Items.Kinds.Null > 0 {
		w.imports = true
		return listType, false
	}
	typ, _ = w.typeOf(m.Items, name, taken, indent, path)
	return typ, true
}

// uniqueIn reserves a name in taken and returns it, with a number appended if the name, or its JSON form, is in
// use.
func uniqueIn(taken map[string]bool, name string) string {
	free := name
	for i := 2; taken[free] || taken[defaultJSONName(free)+"\x00json"]; i++ {
		free = fmt.Sprintf("%s_%d", name, i)
	}
	taken[free], taken[defaultJSONName(free)+"\x00json"] = true, true
	return free
}

// fieldName derives the name of a protobuf field from the name of a JSON member.
func fieldName(member string) string {
	var b strings.Builder
	for _, r := range member[:min(len(member), maxNamed)] {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' {
			b.WriteRune(r)
		} else {
			b.WriteByte('_')
		}
	}
	name := b.String()
	if name == "" || name[0] >= '0' && name[0] <= '9' || name[0] == '_' {
		return "m" + name
	}
	return name
}

// defaultJSONName returns the JSON name that protobuf derives from a field name.
func defaultJSONName(field string) string {
	var b strings.Builder
	upper := false
	for i := range len(field) {
		c := field[i]
		if c == '_' {
			upper = true
			continue
		}
		if upper && c >= 'a' && c <= 'z' {
			c -= 'a' - 'A'
		}
		upper = false
		b.WriteByte(c)
	}
	return b.String()
}

// isPlainText reports whether a JSON name can be written as the option json_name without escapes.
func isPlainText(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return len(s) <= maxNamed && !strings.ContainsAny(s, "[]")
}
