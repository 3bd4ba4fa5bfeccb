package filter

import (
	"unwire/captures"
	"unwire/decode"
	"unwire/decode/fieldpath"
	"unwire/decode/search"
	"unwire/decode/wire"
)

// Given simplifies the filter for the frames of one direction of a running exchange, whose properties so far are x:
// terms whose value can no longer change are replaced by it. value is Yes or No if that decides about all frames of
// the direction. Otherwise it is Unknown, and rest.Frame has the same result as f.Frame, but examines less.
func (f *Filter) Given(x *Exchange, d captures.Direction) (rest *Filter, value Truth) {
	n, value := f.frames.given(x, d)
	if value != Unknown {
		return f, value
	}
	return &Filter{text: f.text, frames: n, exchanges: f.exchanges, groups: f.groups, needs: f.needs}, Unknown
}

// given simplifies condition n for the frames of one direction of x, see Filter.Given. If value is not Unknown, it
// is the value for all these frames.
func (n *node) given(x *Exchange, d captures.Direction) (rest *node, value Truth) {
	switch n.op {
	case opTerm:
		return n, n.term.given(x, d)
	case opNot:
		o, value := n.operands[0].given(x, d)
		return &node{op: opNot, operands: []*node{o}}, -value
	}

	// An operand that decides alone is the result. One that cannot is left out.
	decisive := No
	if n.op == opOr {
		decisive = Yes
	}
	rest = &node{op: n.op}
	for _, o := range n.operands {
		left, value := o.given(x, d)
		switch value {
		case decisive:
			return n, decisive
		case Unknown:
			rest.operands = append(rest.operands, left)
		}
	}
	switch len(rest.operands) {
	case 0:
		return n, -decisive
	case 1:
		return rest.operands[0], Unknown
	}
	return rest, Unknown
}

// given returns the value of the term for all frames of direction d of x. It is Unknown if they differ or if it may
// still change.
func (t *term) given(x *Exchange, d captures.Direction) Truth {
	responded := x.Status != 0 || x.Ended()
	switch {
	case t.key.name == "dir":
		return truthOf(t.matchesWord(d.String()))
	case t.ofFrame():
		return Unknown
	// The response decides about these together with the request, and the recorder about the number.
	case t.key.name == "protocol" && !responded, t.key.name == "codec" && !responded, t.key.name == "id" && x.ID == 0:
		return Unknown
	}
	value := t.eval(evaluation{x: x})
	if t.key.name == "header" && value == No && d == captures.Down && !x.Ended() {
		// The response has headers, too.
		return Unknown
	}
	return value
}

// A Need is a field at the top of a message, or a text, without which a filter matches no frame. The zero value means
// that any frame may match.
type Need struct {
	// Text are texts of which a frame contains one; nil if the filter needs a field.
	Text []*search.Text

	// Name is the number of the field, or the name of the member if the message is JSON. "" means that the filter needs
	// no single field.
	Name string

	// Number is Name as a number. It is 0 for a name: then no protobuf message matches unless its type is known.
	Number uint64

	// Texts are values of which the field has one, if the type of the message is not known; nil allows any value.
	Texts []string
}

// None reports whether any frame may match.
func (n Need) None() bool { return n.Name == "" && n.Text == nil }

// Need returns a field or a text that each frame has that the filter matches; the zero value if there is none.
func (f *Filter) Need() Need { return f.frames.need() }

// need is Filter.Need for condition n.
func (n *node) need() (best Need) {
	switch {
	case n.op == opTerm:
		return n.term.need()
	case n.op == opAnd:
		// A field with a value excludes more frames than one that only has to exist. A text takes longer to find.
		for _, o := range n.operands {
			need := o.need()
			if best.None() || need.Name != "" && (best.Name == "" || best.Texts == nil && need.Texts != nil) {
				best = need
			}
		}
	}
	return best
}

// need is Filter.Need for a filter that consists of this term only.
func (t *term) need() Need {
	switch {
	case len(t.texts) > 0:
		return Need{Text: t.texts}
	case t.key.kind != pathKey || len(t.path) == 0:
		return Need{}
	}
	first := t.path[0]
	if first.Name == "" || first.Name == fieldpath.Any || first.Name == fieldpath.AnySteps {
		return Need{}
	}
	need := Need{Name: first.Name}
	need.Number, _ = first.Number()
	if len(t.path) > 1 || first.Index != fieldpath.All || len(t.patterns) == 0 {
		return need
	}
	texts := make([]string, len(t.patterns))
	for i, p := range t.patterns {
		text, literal := p.literal()
		if !literal {
			return need
		}
		texts[i] = text
	}
	need.Texts = texts
	return need
}

// NumberTexts returns the texts with which a pattern is compared if a field is a number of a wire type and its type is
// not known.
func NumberTexts(typ wire.Type, u uint64) []string { return scalarTexts(nil, typ, u) }

// OfMethod evaluates the filter for the frames of one direction of all calls of a method, using only the method and
// the direction.
func (f *Filter) OfMethod(service, rpc string, d captures.Direction) Truth {
	x := &Exchange{Exchange: &captures.Exchange{}, Call: decode.Call{Service: service, RPC: rpc}}
	return f.frames.evalBy(func(t *term) Truth {
		switch t.key.name {
		case "dir":
			return truthOf(t.matchesWord(d.String()))
		case "method":
			return t.eval(evaluation{x: x})
		}
		return Unknown
	})
}

// evalBy evaluates the condition, with value as the function that returns the value of each term.
func (n *node) evalBy(value func(*term) Truth) Truth {
	switch n.op {
	case opTerm:
		return value(n.term)
	case opNot:
		return -n.operands[0].evalBy(value)
	}
	result := Yes
	if n.op == opOr {
		result = No
	}
	for _, o := range n.operands {
		if v := o.evalBy(value); n.op == opOr {
			result = max(result, v)
		} else {
			result = min(result, v)
		}
	}
	return result
}

// Paths returns the field paths that the filter's terms examine.
func (f *Filter) Paths() (paths []fieldpath.Path) { return f.frames.paths(nil) }

// paths appends the field paths in the terms of condition n to list.
func (n *node) paths(list []fieldpath.Path) []fieldpath.Path {
	if n.op == opTerm && n.term.key.kind == pathKey {
		return append(list, n.term.path)
	}
	for _, o := range n.operands {
		list = o.paths(list)
	}
	return list
}
