package kind

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"unwire/decode/wire"
)

// A Choice is how somebody says that the field at a path is read.
//
// Shape: Type is a Reading's: string, bytes, message, group, packed varint, packed
// fixed32, packed fixed64, a type of numbers; "auto" takes a choice back. A step of
// Path with an index is that element alone, one without all elements.
type Choice struct {
	Path wire.Path
	Kind Kind
	Type string
}

// Auto is the type of a choice that leaves the reading to the evidence.
const Auto = "auto"

// chosenKinds are the types that can be chosen, with other words for them.
var chosenKinds = [...]struct {
	typ   string
	kind  Kind
	other []string
}{
	{"message", wire.KindMessage, nil},
	{"string", wire.KindString, []string{"text"}},
	{"bytes", wire.KindBytes, nil},
	{"packed varint", wire.KindPacked, []string{"packed", "packed-varint", "packed-int32", "packed-int64", "packed-uint32", "packed-uint64", "packed-bool", "packed-enum"}},
	{"packed fixed32", wire.KindPacked, []string{"packed-fixed32", "packed-sfixed32", "packed-float"}},
	{"packed fixed64", wire.KindPacked, []string{"packed-fixed64", "packed-sfixed64", "packed-double"}},
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
	path, err := wire.ParsePath(s[:at])
	if err != nil {
		return Choice{}, fmt.Errorf("kind: %q: %w", s, err)
	}
	word := strings.ToLower(s[at+1:])
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

// A chosen node is one that a Choice is about.
type chosen struct {
	list []Reading // as the choice has it; nil where it does not fit
	err  error
}

// Choose has the nodes that choices name read as they say, where their bytes can
// be read so: with probability 1, before the readings that the evidence gives, which
// keep their own. Of choices about one node the last counts.
func (r *Reader) Choose(choices []Choice) {
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
}

func (r *Reader) choose(i int32, c Choice) chosen {
	rest := r.possible(i, true)
	g := Reading{Kind: c.Kind, Type: c.Type, P: 1, Why: []Feature{{Name: "chosen"}}}
	if g.Kind == "" {
		switch r.t.Node(i).Type {
		case wire.I32:
			g.Kind = wire.KindFixed32
		case wire.I64:
			g.Kind = wire.KindFixed64
		default:
			g.Kind = wire.KindVarint
		}
	}
	if !r.fits(r.t.Node(i), i, &g) {
		return chosen{err: fmt.Errorf("not as chosen, %s: %s", c.Type, r.unfit(i, &g))}
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

// IsPackedVarint reports whether data is varints, none longer than it need be: their
// numbers alone tell the bytes.
func IsPackedVarint(data []byte) bool { return plainVarints(data) == len(data) }

// plainVarints is how many bytes from the beginning on are such varints.
func plainVarints(data []byte) int {
	at := 0
	for at < len(data) {
		v, size := wire.ConsumeVarint(data[at:])
		if size <= 0 || size != wire.SizeVarint(v) {
			break
		}
		at += size
	}
	return at
}

// unfit says why node i cannot be read as g, with the place in the tree's bytes.
func (r *Reader) unfit(i int32, g *Reading) string {
	n := r.t.Node(i)
	if n.Type != wire.Len {
		if n.Type == wire.Varint && g.Type == "bool" {
			return fmt.Sprintf("the value is %d", r.t.Uint(i))
		}
		return fmt.Sprintf("it is a %s on the wire", n.Type)
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
		return fmt.Sprintf("no UTF-8 at 0x%x", n.Val+at)
	case wire.KindPacked:
		switch g.Type {
		case "packed fixed32":
			return fmt.Sprintf("%d bytes are no multiple of 4", len(data))
		case "packed fixed64":
			return fmt.Sprintf("%d bytes are no multiple of 8", len(data))
		}
		return fmt.Sprintf("no varint as an encoder writes it at 0x%x", n.Val+plainVarints(data))
	}
	return "it is a length with what it counts on the wire"
}
