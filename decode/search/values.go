package search

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/decode"
	"unwire/decode/fieldpath"
	"unwire/decode/jsontree"
	"unwire/decode/wire"
)

// A Value is a field of a frame, or a value of JSON in it.
type Value struct {
	// Tree and Node are the field; without a Tree it is JSON.
	Tree *wire.Tree
	Node int32
	JSON jsontree.Value

	// Declared is the declaration of the field; nil if it has none.
	Declared protoreflect.FieldDescriptor
}

// Values hands the values at a path of a frame, also in data inside data, to emit until
// that returns false. With md, the definition of the frame's message, the steps of the path
// may be names of fields; md may be nil.
func Values(f *decode.Frame, path fieldpath.Path, md protoreflect.MessageDescriptor, emit func(Value) bool) {
	s := newSearcher(Query{Path: path}, nil)
	s.declared = md
	s.onValue = func(v Value) {
		if s.wanted() && !emit(v) {
			s.over = true
		}
	}
	s.Frame(f)
}

// In reports whether the text is in a frame.
func (t *Text) In(f *decode.Frame) (found bool) {
	newSearcher(Query{Text: t}, func(Match) bool {
		found = true
		return false
	}).Frame(f)
	return found
}

// declarationOf is the declaration of a field of the message that the steps lead to, which
// was inside something else if enc is not empty; nil if it has none.
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

// isNamed reports whether the declaration of a step has a name.
func (s *step) isNamed(name string) bool {
	return s.declared != nil && (string(s.declared.Name()) == name || s.declared.JSONName() == name)
}
