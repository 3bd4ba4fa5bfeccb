package messages

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"unwire/decode/jsontree"
	"unwire/schema"
	"unwire/schema/infer"
)

const (
	structFile = "google/protobuf/struct.proto"
	valueType  = "google.protobuf.Value"
	listType   = "google.protobuf.ListValue"
	structType = "google.protobuf.Struct"
)

// Write adds a message for each group of JSON messages to what was inferred, in a package;
// "" is the package of messages that are no method's.
//
// Errors: if the definitions do not compile, which is a defect.
func (s *Set) Write(in *infer.Inferred, pkg string) error {
	pkg = cmp.Or(pkg, "inferred")
	w := &writer{taken: map[string]bool{}}
	if in.Schema != nil {
		w.isTaken = func(name string) bool { return in.Schema.Message(pkg+"."+name) != nil }
	}
	for _, key := range slices.Sorted(maps.Keys(s.places)) {
		p := s.places[key]
		if len(p.json) == 0 {
			continue
		}
		groups := p.groups()
		for _, group := range slices.Sorted(maps.Keys(groups)) {
			w.root(key, p.name+kindName(group), group, groups[group])
		}
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

// root writes the message of a group.
func (w *writer) root(place, name, group string, sh *shape) {
	free := name
	for i := 2; w.taken[free] || w.isTaken != nil && w.isTaken(free); i++ {
		free = fmt.Sprintf("%s_%d", name, i)
	}
	w.taken[free] = true
	fmt.Fprintf(&w.text, "// %s in JSON, %s.\n", counted(sh.objects), comment(place))
	if member, value, ok := strings.Cut(group, "="); ok {
		fmt.Fprintf(&w.text, "// Its %s is %q.\n", member, value)
	}
	w.text.WriteString("// JSON has no field numbers: these are made up, in the order of the names.\n")
	w.message(free, sh, "")
	w.text.WriteByte('\n')
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

// message writes a message with those inside it.
func (w *writer) message(name string, sh *shape, indent string) {
	fmt.Fprintf(&w.text, "%smessage %s {\n", indent, name)
	inner := indent + "  "
	taken := map[string]bool{}
	jsonNames := map[string]bool{}
	number := 0
	for _, member := range slices.Sorted(maps.Keys(sh.members)) {
		m := sh.members[member]
		number++
		if sh.open && number > maxMembers {
			break
		}
		field := uniqueIn(taken, fieldName(member))
		typ, repeated := w.typeOf(m, member, taken, inner)
		fmt.Fprintf(&w.text, "%s// Seen in %d of %d.\n", inner, m.seen, sh.objects)
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
	if sh.open {
		fmt.Fprintf(&w.text, "%s// There are more members than are listed.\n", inner)
	}
	fmt.Fprintf(&w.text, "%s}\n", indent)
}

// typeOf is the type of a member, whose message it writes if it has one.
func (w *writer) typeOf(m *member, name string, taken map[string]bool, indent string) (typ string, repeated bool) {
	values := m.kind
	values[jsontree.Null] = 0
	kinds := 0
	for _, n := range values {
		if n > 0 {
			kinds++
		}
	}
	if kinds != 1 {
		w.imports = true
		return valueType, false
	}
	switch {
	case values[jsontree.String] > 0:
		return "string", false
	case values[jsontree.Bool] > 0:
		return "bool", false
	case values[jsontree.Number] > 0 && m.fractional:
		return "double", false
	case values[jsontree.Number] > 0:
		return "int64", false
	case values[jsontree.Object] > 0:
		if m.object.open || len(m.object.members) == 0 {
			w.imports = true
			return structType, false
		}
		free := uniqueIn(taken, cmp.Or(camel(name), "Object"))
		if free[0] >= '0' && free[0] <= '9' {
			free = uniqueIn(taken, "Object"+free)
		}
		w.message(free, m.object, indent)
		return free, false
	}
	if m.items == nil || m.items.seen == 0 || m.items.kind[jsontree.Array] > 0 || m.items.kind[jsontree.Null] > 0 {
		w.imports = true
		return listType, false
	}
	typ, _ = w.typeOf(m.items, name, taken, indent)
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
