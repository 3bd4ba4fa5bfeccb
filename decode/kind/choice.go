package kind

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"unwire/decode/fieldpath"
	"unwire/decode/wire"
)

// A Choice is how somebody says that the field at a path is read.
//
// Shape: Type is a Reading's: string, bytes, message, group, a type of numbers, or
// "packed " and such a type; "auto" takes a choice back. A type of numbers is, for a
// length-delimited field, a packed list of such numbers. A step of Path with an index
// is that element alone, one without all elements.
type Choice struct {
	Path fieldpath.Path
	Kind wire.Kind
	Type string
}

// Auto is the type of a choice that leaves the reading to the evidence.
const Auto = "auto"

// chosenKinds are the types that can be chosen, with other words for them.
var chosenKinds = [...]struct {
	typ   string
	kind  wire.Kind
	other []string
}{
	{"message", wire.KindMessage, nil},
	{"string", wire.KindString, []string{"text"}},
	{"bytes", wire.KindBytes, nil},
	{"packed varint", wire.KindPacked, []string{"packed"}},
	{"packed int64", wire.KindPacked, []string{"packed int32", "packed int"}},
	{"packed uint64", wire.KindPacked, []string{"packed uint32", "packed uint"}},
	{"packed sint64", wire.KindPacked, []string{"packed sint32", "packed sint", "packed zigzag"}},
	{"packed bool", wire.KindPacked, nil},
	{"packed enum", wire.KindPacked, nil},
	{"packed float", wire.KindPacked, nil},
	{"packed fixed32", wire.KindPacked, nil},
	{"packed sfixed32", wire.KindPacked, nil},
	{"packed double", wire.KindPacked, nil},
	{"packed fixed64", wire.KindPacked, nil},
	{"packed sfixed64", wire.KindPacked, nil},
	{"group", wire.KindGroup, nil},
	{"int64", wire.KindVarint, []string{"int32", "int", "varint"}},
	{"uint64", wire.KindVarint, []string{"uint32", "uint"}},
	{"sint64", wire.KindVarint, []string{"sint32", "sint", "zigzag"}},
	{"bool", wire.KindVarint, nil},
	{"enum", wire.KindVarint, nil},
	{"float", wire.KindFixed32, nil},
	{"fixed32", wire.KindFixed32, nil},
	{"sfixed32", wire.KindFixed32, nil},
	{"double", wire.KindFixed64, nil},
	{"fixed64", wire.KindFixed64, nil},
	{"sfixed64", wire.KindFixed64, nil},
	{"timestamp-s", "", []string{"epoch-s"}}, // a varint or a fixed number
	{"timestamp-ms", "", []string{"epoch-ms"}},
	{"timestamp-us", "", []string{"epoch-us"}},
	{"timestamp-ns", "", []string{"epoch-ns"}},
	{Auto, "", nil},
}

// ParseChoice reads a choice as String writes it: `1.2:string`.
//
// Errors: say what is wrong with the path, or which types there are.
func ParseChoice(s string) (Choice, error) {
	at := strings.IndexByte(s, ':')
	if at <= 0 {
		return Choice{}, fmt.Errorf("kind: %q: a path and a type, as 1.2:string", s)
	}
	path, err := fieldpath.ParseNumbers(s[:at])
	if err != nil {
		return Choice{}, fmt.Errorf("kind: %q: %w", s, err)
	}
	word := strings.ToLower(s[at+1:])
	if element, ok := strings.CutPrefix(word, "packed-"); ok {
		word = packedPrefix + element
	}
	for _, k := range chosenKinds {
		if word == k.typ || slices.Contains(k.other, word) {
			return Choice{path, k.kind, k.typ}, nil
		}
	}
	return Choice{}, fmt.Errorf("kind: %q: the type is one of %s", s, strings.Join(chosenWords(), ", "))
}

func chosenWords() []string {
	var words []string
	for _, k := range chosenKinds {
		words = append(words, strings.ReplaceAll(k.typ, " ", "-"))
	}
	return words
}

func (c Choice) String() string {
	return c.Path.String() + ":" + strings.ReplaceAll(c.Type, " ", "-")
}

// For is the kind and type that the choice means for a field of wire type t.
func (c Choice) For(t wire.Type) (wire.Kind, string) {
	k := c.Kind
	if k == "" { // a time, which any number can be
		switch t {
		case wire.I32:
			return wire.KindFixed32, c.Type
		case wire.I64:
			return wire.KindFixed64, c.Type
		}
		return wire.KindVarint, c.Type
	}
	if t == wire.Len && isNumber(k) {
		return wire.KindPacked, packedPrefix + c.Type
	}
	return k, c.Type
}

// A chosen node is one that a Choice is about.
type chosen struct {
	list    []Reading // as the choice has it; nil where it does not fit
	err     error
	implied bool // a message, because a field in it was chosen
}

// Choose has the nodes that choices name read as they say, where their bytes can
// be read so: with probability 1, before the readings that the evidence gives, which
// keep their own. Of choices about one node the last counts. What is around a field
// that was chosen is a message, unless something else was chosen for it.
func (r *Reader) Choose(choices []Choice) {
	maps.DeleteFunc(r.chosen, func(_ int32, c chosen) bool { return c.implied })
	for _, c := range choices {
		for _, i := range r.t.Find(c.Path) {
			if i == 0 {
				continue
			}
			if r.chosen == nil {
				r.chosen = map[int32]chosen{}
			}
			delete(r.chosen, i)
			if c.Type == Auto {
				continue
			}
			r.chosen[i] = r.choose(i, c)
		}
	}
	for _, i := range slices.Collect(maps.Keys(r.chosen)) {
		if r.chosen[i].err == nil {
			r.imply(i)
		}
	}
}

// imply has the payloads around node i read as messages.
func (r *Reader) imply(i int32) {
	for up := r.t.Node(i).Parent; up > 0; up = r.t.Node(up).Parent {
		if _, explicit := r.chosen[up]; explicit || r.t.Node(up).Type != wire.Len {
			continue
		}
		if is, _, _ := r.Best(up); is == wire.KindMessage {
			continue
		}
		c := r.choose(up, Choice{Kind: wire.KindMessage, Type: string(wire.KindMessage)})
		if c.implied = true; c.err == nil {
			r.chosen[up] = c
		}
	}
}

func (r *Reader) choose(i int32, c Choice) chosen {
	rest := r.possible(i, true)
	g := Reading{P: 1, Why: []Feature{{Name: "chosen"}}}
	g.Kind, g.Type = c.For(r.t.Node(i).Type)
	if !r.fits(r.t.Node(i), i, &g) {
		return chosen{err: fmt.Errorf("cannot read as %s: %s", c.Type, r.unfit(i, &g, c))}
	}
	out := []Reading{g}
	for _, o := range rest {
		if o.Kind != g.Kind || o.Type != g.Type {
			out = append(out, o)
		}
	}
	return chosen{list: out}
}

// Chosen reports whether node i's reading was chosen; the error says why its
// bytes are not read as they were to be.
func (r *Reader) Chosen(i int32) (bool, error) {
	c, ok := r.chosen[i]
	return ok && c.err == nil, c.err
}

// wireWords name the wire types of fields.
var wireWords = map[wire.Type]string{
	wire.Varint: "a varint", wire.I32: "a fixed 32-bit value", wire.I64: "a fixed 64-bit value", wire.StartGroup: "a group",
}

// unfit says why node i cannot be read as g, which the choice c asks for, with the
// place in the tree's bytes.
func (r *Reader) unfit(i int32, g *Reading, c Choice) string {
	n := r.t.Node(i)
	if n.Type != wire.Len {
		if n.Type == wire.Varint && g.Type == "bool" {
			return fmt.Sprintf("the value is %d", r.t.Uint(i))
		}
		return "the field is " + wireWords[n.Type]
	}
	data := r.t.Payload(i)
	switch g.Kind {
	case wire.KindMessage:
		inner := wire.Parse(data, wire.Options{})
		for k := range inner.Nodes {
			if bad, ok := errors.AsType[*wire.Error](inner.Nodes[k].Err); ok && inner.Nodes[k].Type != wire.Len {
				bad.Off += n.Val
				return bad.Error()
			}
		}
		return "its fields were not followed"
	case wire.KindString:
		at := 0
		for at < len(data) {
			c, size := utf8.DecodeRune(data[at:])
			if c == utf8.RuneError && size <= 1 {
				break
			}
			at += size
		}
		return fmt.Sprintf("invalid UTF-8 at 0x%x", n.Val+at)
	case wire.KindPacked:
		why := unfitPacked(g.Type, data, n.Val)
		if c.Kind != wire.KindPacked {
			why = "the field is length-delimited, " + why
		}
		return why
	}
	return "the field is length-delimited"
}

// unfitPacked says why data, which begins at off, is no packed list of type typ.
func unfitPacked(typ string, data []byte, off int) string {
	switch ElementOf(typ) {
	case PackedFixed32:
		return fmt.Sprintf("%d bytes are not a multiple of 4", len(data))
	case PackedFixed64:
		return fmt.Sprintf("%d bytes are not a multiple of 8", len(data))
	}
	if at := plainVarints(data); at < len(data) {
		return fmt.Sprintf("there is no minimally encoded varint at 0x%x", off+at)
	}
	return fmt.Sprintf("the number at 0x%x is neither 0 nor 1", off+notBool(data))
}
