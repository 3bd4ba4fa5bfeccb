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

const (
	structFile = "google/protobuf/struct.proto"
	valueType  = "google.protobuf.Value"
	listType   = "google.protobuf.ListValue"
	structType = "google.protobuf.Struct"
)

// Write adds a message for each group of JSON messages in the evidence to what was inferred
// of it, in a package; "" is the package of messages that are no method's.
//
// Errors: if the definitions do not compile, which is a defect.
func Write(in *infer.Inferred, ev *infer.Evidence, pkg string) error {
	pkg = cmp.Or(pkg, "inferred")
	w := &writer{taken: map[string]bool{}}
	if in.Schema != nil {
		w.isTaken = func(name string) bool { return in.Schema.Message(pkg+"."+name) != nil }
	}
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
		return fmt.Errorf("messages: the inferred definitions do not compile, which is a defect of unwire: %w", err)
	}
	return nil
}

// A writer writes messages.
type writer struct {
	text    strings.Builder
	taken   map[string]bool
	isTaken func(name string) bool
	imports bool

	// fields are those of the last message.
	fields []infer.JSONField
}

// appendTo returns a file with the messages behind what it has.
func (w *writer) appendTo(file, pkg string) string {
	head := "package " + pkg + ";\n\n"
	if file == "" {
		file = "// Inferred from traffic by unwire.\nsyntax = \"proto3\";\n\n" + head
	}
	if w.imports && !strings.Contains(file, strconv.Quote(structFile)) {
		file = strings.Replace(file, head, head+"import "+strconv.Quote(structFile)+";\n\n", 1)
	}
	return strings.TrimRight(file, "\n") + "\n\n" + strings.TrimRight(w.text.String(), "\n") + "\n"
}

// root writes the message of a group, and returns its name.
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
	w.text.WriteString("// JSON has no field numbers: these are made up, in the order of the names.\n")
	w.message(free, g.Shape, "", "")
	w.text.WriteByte('\n')
	return free
}

func counted(n int64) string {
	if n == 1 {
		return "1 message"
	}
	return fmt.Sprintf("%d messages", n)
}

// comment makes a text safe for a comment's line.
func comment(s string) string {
	q := strconv.QuoteToASCII(s)
	return q[1 : len(q)-1]
}

// message writes a message with those inside it. path is that of the object in the group's.
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
		fmt.Fprintf(&w.text, "%s// Seen in %d of %d.\n", inner, m.Seen, sh.Objects)
		label := ""
		if repeated {
			label = "repeated "
		}
		option := ""
		if defaultJSONName(field) != member && !jsonNames[member] && isPlainText(member) {
			option = " [json_name = " + strconv.QuoteToASCII(member) + "]"
		}
		jsonNames[member] = true
		fmt.Fprintf(&w.text, "%s%s%s %s = %d%s;\n", inner, label, typ, field, number, option)
	}
	if sh.Open {
		fmt.Fprintf(&w.text, "%s// There are more members than are listed.\n", inner)
	}
	fmt.Fprintf(&w.text, "%s}\n", indent)
}

// typeOf is the type of a member, whose message it writes if it has one.
func (w *writer) typeOf(m *jsonshape.Member, name string, taken map[string]bool, indent, path string) (typ string, repeated bool) {
	values := m.Kinds
	kinds := 0
	for _, n := range []int64{values.Bool, values.Number, values.String, values.Array, values.Object} {
		if n > 0 {
			kinds++
		}
	}
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
	if m.Items == nil || m.Items.Seen == 0 || m.Items.Kinds.Array > 0 || m.Items.Kinds.Null > 0 {
		w.imports = true
		return listType, false
	}
	typ, _ = w.typeOf(m.Items, name, taken, indent, path)
	return typ, true
}

// uniqueIn is a name that is not taken, and takes it.
func uniqueIn(taken map[string]bool, name string) string {
	free := name
	for i := 2; taken[free] || taken[defaultJSONName(free)+"\x00json"]; i++ {
		free = fmt.Sprintf("%s_%d", name, i)
	}
	taken[free], taken[defaultJSONName(free)+"\x00json"] = true, true
	return free
}

// fieldName makes the name of a field of a member's.
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

// defaultJSONName is the name that a field has in JSON where nothing else is declared.
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

// isPlainText reports a name that may stand in a definition as it is.
func isPlainText(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return len(s) <= maxNamed && !strings.ContainsAny(s, "[]")
}
