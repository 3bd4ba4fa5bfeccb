package bundle

import (
	"strings"

	"unwire/schema/bundle/jstree"

	"unwire/schema/bundle/model"

	"github.com/tdewolff/parse/v2/js"
	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/schema/bundle/lexer"
)

// An encoder is a generated function that writes a message with the Writer of protobufjs. Static protobufjs
// code and ts-proto have such functions.
type encoder struct {
	// body is the bracket around the body of the function encode.
	body int32
	// param is the name of the function's parameter that is the message.
	param string
	// at is the index of the token "encode", the name of the function.
	at int32
	// fields are the fields that the function writes.
	fields []*model.Field

	// looked is set when hasCases has searched the function. cases is the result of hasCases.
	looked, cases bool
}

// encoders finds the functions that write tags (field number and wire type), and extracts the fields that they
// write.
func (x *scan) encoders() []*encoder {
	s := x.Script
	by := map[int32]*encoder{}
	var list []*encoder
	s.EncodeArrows()

	consumed := map[int32]bool{}
	for _, at := range s.Anchors[jstree.AnchorUint32] {
		if consumed[at] || s.Typ(at-1) != js.DotToken || s.Typ(at+1) != js.OpenParenToken || !js.IsNumeric(s.Typ(at+2)) {
			continue
		}
		body, word := s.EnclosingEncode(at)
		if body == 0 {
			continue
		}
		e := by[body]
		if e == nil {
			e = &encoder{body: body, at: word, param: s.Param(body, 0)}
			by[body], list = e, append(list, e)
		}
		if f := x.writtenField(e, at, consumed); f != nil {
			e.fields = append(e.fields, f)
		}
	}
	return list
}

// writtenField extracts the field whose tag is written at the token with index at. consumed collects the tags
// that belong to other fields, such as those of keys and values of maps. The code has one of these forms:
//
//	w.uint32(10).string(m.x)
//	T.encode(m.x, w.uint32(18).fork()).ldelim()
//	w.uint32(26).fork(); for (…) w.int32(m.x[i]); w.ldelim()
//	w.uint32(34).fork().uint32(8).int32(k).uint32(18).string(v).ldelim()
func (x *scan) writtenField(e *encoder, at int32, consumed map[int32]bool) *model.Field {
	s := x.Script
	tag, ok := s.Integer((&jstree.Reader{Script: s}).Primary(at + 2))
	next := s.EnclosingBracket(at+1).Close + 1
	if !ok || tag < 8 || tag&7 == 4 {
		return nil
	}

	// The tag contains the number of the field and its wire type.
	f := &model.Field{Number: tag >> 3, Place: x.place(at)}
	end := s.Brackets[e.body].Close
	word := ""
	if s.Typ(next) == js.DotToken {
		word = s.Text(next + 1)
	}

	// The tag is written inside a call of encode, before a map entry or packed list, or before a value.
	own := s.EnclosingBracket(at)
	open := next + 2
	switch {

	// T.encode(m.x, w.uint32(18).fork()): a message or a group.
	case own.Kind == '(' && s.Is(own.Open-1, "encode"):
		f.Group = tag&7 == 3
		f.Ref = x.ref(s.ObjectOf(own.Open - 1))
		f.Entry = s.Typ(own.Open+1) == js.OpenBraceToken && s.Is(own.Open+2, "key")
		f.Name, f.Repeated = x.writtenName(e, own.Open+1, at)

	// A map: the tag of the key follows immediately.
	case word == "fork" && s.Typ(open+2) == js.DotToken && s.Is(open+3, "uint32"):
		x.writtenMap(e, f, open+3, consumed)
		f.Name, _ = x.writtenName(e, at, at)
	case word == "fork":
		if !s.MayScanSpan(open, end) {
			return nil
		}
		// The loop between fork and ldelim writes the elements.
		for i := open; i < end; i++ {
			if s.Typ(i) == js.DotToken && (s.Is(i+1, "ldelim") || s.Is(i+1, "join")) {
				end = i
				break
			}
			if t, _ := x.writerMethod(s.Text(i + 1)); s.Typ(i) == js.DotToken && t != 0 && s.Typ(i+2) == js.OpenParenToken {
				f.Scalar = t
			}
		}
		packed := true
		f.Repeated, f.Packed = true, &packed
		if f.Name = memberAfter(s, e, open, end); f.Name == "" {
			f.Name = memberBefore(s, e, at)
		}
	default:
		t, many := x.writerMethod(word)
		if t == 0 {
			return nil
		}
		f.Scalar = t
		f.Name, f.Repeated = x.writtenName(e, open+1, at)
		if many {
			packed := true
			f.Repeated, f.Packed = true, &packed
		} else if f.Repeated && model.Packable(t) {
			packed := false
			f.Packed = &packed
		}
	}
	if f.Name == "" {
		x.unresolved("", at, "the code writes a tag, but the field is unknown")
		return nil
	}
	x.union(e, f, at)
	return f
}

// writtenName returns the name of the field that the tokens from index from on write. repeated is set if only
// an element of it is written: m.x[i], or the variable of a loop over m.x. at is the token of the tag.
func (x *scan) writtenName(e *encoder, from, at int32) (name string, repeated bool) {
	s := x.Script
	close := s.EnclosingBracket(from - 1).Close
	// The name of a map is in the loop around it.
	if from == at {
		return memberBefore(s, e, at), false
	}
	for i := from; i < close; i++ {
		if s.Is(i, e.param) && s.Typ(i+1) == js.DotToken && s.Typ(i-1) != js.DotToken {
			return s.Text(i + 2), s.Typ(i+3) == js.OpenBracketToken
		}
		if s.Is(i, e.param) && s.Typ(i+1) == js.OpenBracketToken && s.Typ(i+2) == js.StringToken {
			return lexer.Unquote(s.Text(i + 2)), s.Typ(i+4) == js.OpenBracketToken
		}
	}
	return memberBefore(s, e, at), true
}

// memberAfter returns the first member of the message that occurs between two token indices, or "".
func memberAfter(s *jstree.Script, e *encoder, from, end int32) string {
	for i := from; i < end; i++ {
		if s.Is(i, e.param) && s.Typ(i-1) != js.DotToken {
			switch {
			case s.Typ(i+1) == js.DotToken:
				return s.Text(i + 2)
			case s.Typ(i+1) == js.OpenBracketToken && s.Typ(i+2) == js.StringToken:
				return lexer.Unquote(s.Text(i + 2))
			}
		}
	}
	return ""
}

// memberBefore returns the last member of the message that occurs before the token with index at, or "".
func memberBefore(s *jstree.Script, e *encoder, at int32) string {
	if !s.MayScanSpan(s.Brackets[e.body].Open, at) {
		return ""
	}
	for i := at; i > s.Brackets[e.body].Open; i-- {
		if s.Typ(i) == js.DotToken && s.Is(i-1, e.param) && s.Typ(i-2) != js.DotToken {
			return s.Text(i + 1)
		}
		if s.Typ(i) == js.OpenBracketToken && s.Is(i-1, e.param) && s.Typ(i+1) == js.StringToken {
			return lexer.Unquote(s.Text(i + 1))
		}
	}
	return ""
}

// writtenMap sets the key and value types of a map field. at is the token that writes the key's tag. The tags
// are added to consumed.
func (x *scan) writtenMap(e *encoder, f *model.Field, at int32, consumed map[int32]bool) {
	s := x.Script
	consumed[at] = true

	// This is .int32(key).
	next := s.EnclosingBracket(at+1).Close + 1
	f.MapKey, _ = x.writerMethod(s.Text(next + 1))
	if f.MapKey == 0 {
		f.MapKey = descriptorpb.FieldDescriptorProto_TYPE_STRING
	}

	// This is .uint32(18).
	after := s.EnclosingBracket(next+2).Close + 1
	if s.Typ(after) == js.DotToken && s.Is(after+1, "uint32") {
		consumed[after+1] = true
		value := s.EnclosingBracket(after+2).Close + 1
		if f.Scalar, _ = x.writerMethod(s.Text(value + 1)); f.Scalar != 0 {
			return
		}
	}

	// In T.encode(m.x[k], w.uint32(18).fork()).ldelim(), the next tag is that of the value.
	end := s.Brackets[e.body].Close
	for i := next; i < end && s.Step(i); i++ {
		if s.Is(i, "uint32") && s.Typ(i-1) == js.DotToken {
			consumed[i] = true
			if own := s.EnclosingBracket(i); own.Kind == '(' && s.Is(own.Open-1, "encode") {
				f.Ref = x.ref(s.ObjectOf(own.Open - 1))
				return
			}
		}
	}
	f.Scalar = descriptorpb.FieldDescriptorProto_TYPE_BYTES
}

// writerMethod returns the scalar type that a method of Writer writes, or 0. The second result is set if the
// method writes a packed list.
func (x *scan) writerMethod(name string) (descriptorpb.FieldDescriptorProto_Type, bool) {
	if t := x.scalarNamed(name); t != 0 {
		return t, false
	}
	if one, ok := strings.CutSuffix(name, "s"); ok {
		if t := x.scalarNamed(one); t != 0 && model.Packable(t) {
			return t, true
		}
	}
	return 0, false
}
