package search

import (
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/decode"
	"unwire/decode/fieldpath"
	"unwire/decode/jsontree"
	"unwire/decode/wire"
)

// A Value is a protobuf field of a frame, or a JSON value in it.
type Value struct {
	// Tree is the parsed message that contains the field; nil for a JSON value.
	Tree *wire.Tree

	// Node is the index of the field in Tree.Nodes; not used if Tree is nil.
	Node int32

	// JSON is the value, if the frame is JSON.
	JSON jsontree.Value

	// Declared is the declaration of the field; nil if unknown.
	Declared protoreflect.FieldDescriptor
}

// Values calls emit with each value of a frame at a path, including values in data inside data, until emit
// returns false. If md, the definition of the frame's message, is not nil, steps of the path may be field names.
func Values(f *decode.Frame, path fieldpath.Path, md protoreflect.MessageDescriptor, emit func(Value) bool) {
	// Most frames do not have the path's first field. To find that out must be cheap, because a frame that passes the
	// proxy is asked about the path of each rule.
	if f.Tree != nil && len(f.Inner) == 0 && len(path) > 0 && !hasField(f.Tree, path[0], md) {
		return
	}
	s := searcher{q: Query{Path: path}, declared: md, onValue: emit, steps: make([]step, 0, len(path)+1)}
	s.Frame(f)
}

// hasField reports whether message t has a field that first, the first step of a path, may select. md is the
// message's definition or nil.
func hasField(t *wire.Tree, first fieldpath.Step, md protoreflect.MessageDescriptor) bool {
	number, isNumber := first.Number()
	if !isNumber {
		return first.Name == fieldpath.Any || first.Name == fieldpath.AnySteps || md != nil
	}
	for c := t.Nodes[0].First; c != wire.None; c = t.Nodes[c].Next {
		if t.Nodes[c].Number == number {
			return true
		}
	}
	return false
}

// reportValue reports a value to the caller of Values if the path is that of the query.
func (s *searcher) reportValue(v Value) {
	if s.pathMatches() && !s.onValue(v) {
		s.over = true
	}
}

// visit searches the field in node c of message t, unless the search is for Values and the path to the field cannot
// lead to one.
func (s *searcher) visit(t *wire.Tree, c int32, n *wire.Node) {
	if s.onValue == nil || s.leadsTo(len(s.steps)) {
		s.searchNode(t, c, n)
	}
}

// leadsTo reports whether the current path's step at depth (from 1) may lead to a value that Values reports, if the
// steps before it do.
func (s *searcher) leadsTo(depth int) bool {
	path := s.q.Path
	if len(path) == 0 || anySteps(path[:min(depth, len(path))]) {
		return true
	}
	return depth <= len(path) && matchStep(&path[depth-1], &s.steps[depth-1])
}

// anySteps reports whether a path has a wildcard for any number of steps.
func anySteps(path fieldpath.Path) bool {
	return slices.ContainsFunc(path, func(p fieldpath.Step) bool { return p.Name == fieldpath.AnySteps })
}

// In reports whether the text pattern occurs anywhere in a frame.
func (t *Text) In(f *decode.Frame) (found bool) {
	s := searcher{q: Query{Text: t}, alone: true, emit: func(Match) bool {
		found = true
		return false
	}}
	s.Frame(f)
	return found
}

// declarationOf returns the declaration of field n in the message at the current path, or nil. There is none if the
// message was encoded inside another value (enc is not "").
func (s *searcher) declarationOf(n *wire.Node, enc string) protoreflect.FieldDescriptor {
	md := s.declared
	if md == nil || enc != "" || n.Number > uint64(protowire.MaxValidNumber) {
		return nil
	}
	if len(s.steps) > 0 {
		above := s.steps[len(s.steps)-1].declared
		if above == nil || above.Message() == nil {
			return nil
		}
		md = above.Message()
	}
	return md.Fields().ByNumber(protowire.Number(n.Number))
}

// isNamed reports whether the step's field has the given name in the schema.
func (s *step) isNamed(name string) bool {
	return s.declared != nil && (string(s.declared.Name()) == name || s.declared.JSONName() == name)
}
