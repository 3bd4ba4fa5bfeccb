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

// A Choice is the type that a user chose for the field at a path.
//
// Shape: a step of Path with an index selects that element only, and one without an index all elements.
type Choice struct {
	// Path selects the field whose type is chosen.
	Path fieldpath.Path

	// Kind is the wire kind that Type implies, or "" for a timestamp, which any number may be.
	Kind wire.Kind

	// Type is the chosen type: string, bytes, message, group, a type of numbers, or "packed " and a
	// type of numbers. For a length-delimited field, a type of numbers means a packed list. "auto"
	// revokes an earlier choice.
	Type string
}

// Auto is the type of a Choice that revokes earlier choices, so that the type is inferred.
const Auto = "auto"

// chosenKinds are the types that users can choose, with synonyms.
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
	// A varint or a fixed number.
	{"timestamp-s", "", []string{"epoch-s"}},
	{"timestamp-ms", "", []string{"epoch-ms"}},
	{"timestamp-us", "", []string{"epoch-us"}},
	{"timestamp-ns", "", []string{"epoch-ns"}},
	{Auto, "", nil},
}

// ParseChoice parses a choice in the form of String: `1.2:string`.
//
// Errors: an invalid path, or an unknown type, with the list of types.
func ParseChoice(s string) (Choice, error) {
	at := strings.IndexByte(s, ':')
	if at <= 0 {
		return Choice{}, fmt.Errorf("%q is not a path and a type, such as 1.2:string", s)
	}
	path, err := fieldpath.ParseNumbers(s[:at])
	if err != nil {
		return Choice{}, fmt.Errorf("%q: %w", s, err)
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
	return Choice{}, fmt.Errorf("%q: the type must be one of %s", s, strings.Join(ChoiceTypes(), ", "))
}

// ChoiceTypes returns the names of the types that users can choose, without Auto.
func ChoiceTypes() []string {
	var words []string
	for _, k := range chosenKinds {
		words = append(words, strings.ReplaceAll(k.typ, " ", "-"))
	}
	return words
}

// String returns the choice in the form that ParseChoice parses.
func (c Choice) String() string {
	return c.Path.String() + ":" + strings.ReplaceAll(c.Type, " ", "-")
}

// For returns the kind and the type to which the choice sets a field of wire type t.
func (c Choice) For(t wire.Type) (wire.Kind, string) {
	k := c.Kind
	// A timestamp may be any number.
	if k == "" {
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

// A chosenTypes is the effect of a user's Choice on one node (field occurrence) of a message.
type chosenTypes struct {
	// list are the possible types, the chosen one first; nil if the node's bytes contradict the choice.
	list []Reading

	// err describes why the bytes contradict the choice, or is nil.
	err error

	// implied means that the node must be a message because the user chose the type of a field inside
	// it.
	implied bool
}

// Choose applies the users' choices to the nodes that they select. If a node's bytes allow the chosen type, it
// becomes the first of the node's possible types, with probability 1, and the others keep their probabilities. The
// last choice for a node counts. A payload around a chosen field becomes a message, unless something else was
// chosen for that payload.
func (r *Reader) Choose(choices []Choice) {
	maps.DeleteFunc(r.chosen, func(_ int32, c chosenTypes) bool { return c.implied })
	for _, c := range choices {
		for _, i := range r.t.Find(c.Path) {
			if i == 0 {
				continue
			}
			if r.chosen == nil {
				r.chosen = map[int32]chosenTypes{}
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
			r.implyMessages(i)
		}
	}
}

// implyMessages sets the type of all payloads that enclose node i to message.
func (r *Reader) implyMessages(i int32) {
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

// choose returns the effect of the user's choice c on node i.
func (r *Reader) choose(i int32, c Choice) chosenTypes {
	rest := r.possible(i, true)
	g := Reading{P: 1, Why: []Feature{{Name: "chosen"}}}
	g.Kind, g.Type = c.For(r.t.Node(i).Type)
	if !r.fits(r.t.Node(i), i, &g) {
		return chosenTypes{err: fmt.Errorf("cannot read as %s: %s", c.Type, r.mismatch(i, &g, c))}
	}
	out := []Reading{g}
	for _, o := range rest {
		if o.Kind != g.Kind || o.Type != g.Type {
			out = append(out, o)
		}
	}
	return chosenTypes{list: out}
}

// Chosen reports whether a user chose the type of node i. The error, if any, describes why the node's bytes
// contradict the choice.
func (r *Reader) Chosen(i int32) (bool, error) {
	if len(r.chosen) == 0 {
		return false, nil
	}
	c, ok := r.chosen[i]
	return ok && c.err == nil, c.err
}

// wireWords describe wire types in error messages.
var wireWords = map[wire.Type]string{
	wire.Varint: "a varint", wire.I32: "a fixed 32-bit value", wire.I64: "a fixed 64-bit value", wire.StartGroup: "a group",
}

// mismatch describes why node i cannot be decoded as the type g that choice c asks for, with the offset of the
// contradiction.
func (r *Reader) mismatch(i int32, g *Reading, c Choice) string {
	n := r.t.Node(i)
	// Other wire types have only one reading per type, so the wire type is the reason.
	if n.Type != wire.Len {
		if n.Type == wire.Varint && g.Type == "bool" {
			return fmt.Sprintf("the value is %d", r.t.Uint(i))
		}
		return "the field is " + wireWords[n.Type]
	}

	data := r.t.Payload(i)
	switch g.Kind {
	case wire.KindMessage:
		// The payload was not parsed as a message, so parse it again for the reason.
		inner := wire.Parse(data, wire.Options{})
		for k := range inner.Nodes {
			if bad, ok := errors.AsType[*wire.Error](inner.Fault(&inner.Nodes[k])); ok && inner.Nodes[k].Type != wire.Len {
				bad.Off += n.Val
				return bad.Error()
			}
		}
		return "the fields of the message were not decoded"
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
		why := mismatchPacked(g.Type, data, n.Val)
		if c.Kind != wire.KindPacked {
			why = "the field is length-delimited, " + why
		}
		return why
	}
	return "the field is length-delimited"
}

// mismatchPacked describes why data, which begins at offset off, is not a packed list of type typ.
func mismatchPacked(typ string, data []byte, off int) string {
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
