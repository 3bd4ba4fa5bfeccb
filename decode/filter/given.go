package filter

import (
	"unwire/captures"
	"unwire/decode"
	"unwire/decode/fieldpath"
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

// FirstField returns a field number that occurs at the top level of every protobuf message that matches the filter,
// so that other messages need not be decoded. It returns 0 if the filter requires no such field.
func (f *Filter) FirstField() uint64 { return f.frames.firstField() }

// firstField is Filter.FirstField for condition n.
func (n *node) firstField() uint64 {
	switch {
	case n.op == opTerm && n.term.key.kind == pathKey && len(n.term.path) > 0:
		number, _ := n.term.path[0].Number()
		return number
	case n.op == opAnd:
		for _, o := range n.operands {
			if number := o.firstField(); number > 0 {
				return number
			}
		}
	}
	return 0
}

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
