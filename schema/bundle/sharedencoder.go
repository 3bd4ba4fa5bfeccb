package bundle

import (
	"slices"
	"strings"

	"github.com/tdewolff/parse/v2/js"
	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/schema/bundle/lexer"
)

// An encoder is a function that writes a message with protobufjs' Writer, as
// protobufjs' static code and ts-proto have it.
type encoder struct {
	body   int32  // bracket
	param  string // the message
	at     int32  // the word encode
	fields []*field

	looked, cases bool // for oneofs as unions
}

// encoders finds the functions that write tags and reads their fields.
func (x *scan) encoders() []*encoder {
	s := x.script
	by := map[int32]*encoder{}
	var list []*encoder
	s.encodeArrows()
	consumed := map[int32]bool{}
	for _, at := range s.anchors[anchorUint32] {
		if consumed[at] || s.typ(at-1) != js.DotToken || s.typ(at+1) != js.OpenParenToken || !js.IsNumeric(s.typ(at+2)) {
			continue
		}
		body, word := s.enclosingEncode(at)
		if body == 0 {
			continue
		}
		e := by[body]
		if e == nil {
			e = &encoder{body: body, at: word, param: s.param(body, 0)}
			by[body], list = e, append(list, e)
		}
		if f := x.writtenField(e, at, consumed); f != nil {
			e.fields = append(e.fields, f)
		}
	}
	return list
}

// enclosingEncode returns the body of the function called encode around a token,
// and its name's token.
func (s *script) enclosingEncode(at int32) (body, word int32) {
	for br, n := s.tok(at).br, 0; br != 0 && n < maxNesting && s.step(at); br, n = s.brs[br].parent, n+1 {
		if !s.brs[br].fn {
			continue
		}
		word = s.nameOf(br)
		if s.is(word, "encode") {
			return br, word
		}
	}
	i, found := slices.BinarySearchFunc(s.arrows, at, func(br, at int32) int { return int(s.brs[br].open - at) })
	if !found {
		i--
	}
	if i >= 0 && s.brs[s.arrows[i]].open <= at && at < s.brs[s.arrows[i]].close {
		return s.arrows[i], s.nameOf(s.arrows[i])
	}
	return 0, 0
}

// encodeArrows gives encode: (m, w) => expression, and Foo.encode = (m, w) =>
// expression, a bracket of its own, as if its body were in braces.
func (s *script) encodeArrows() {
	for _, at := range s.anchors[anchorEncode] {
		if s.typ(at+1) != js.ColonToken && (s.typ(at+1) != js.EqToken || s.typ(at-1) != js.DotToken) {
			continue
		}
		if fn := s.expr(at + 2); fn.kind == nFunc && len(fn.kids) == 1 {
			br := int32(len(s.brs))
			s.arrows = append(s.arrows, br)
			open := at + 3
			for s.typ(open-1) != js.ArrowToken && open < fn.end {
				open = s.next(open)
			}
			s.brs = append(s.brs, bracket{open: open, close: fn.end, parent: s.tok(at).br, function: br, kind: '{', fn: true})
		}
	}
}

// nameOf returns the token of the name that a function with a body has or is
// given: f(…) {…}, f: function (…) {…}, x.f = function g(…) {…}; or -1.
func (s *script) nameOf(body int32) int32 {
	at := s.brs[body].open - 1
	if s.typ(at) == js.ArrowToken {
		at--
	}
	if s.typ(at) == js.CloseParenToken {
		at = s.enclosingBracket(at).open
	}
	at--
	if js.IsIdentifier(s.typ(at)) && s.typ(at-1) == js.FunctionToken {
		at--
	} else if js.IsIdentifier(s.typ(at)) {
		return at
	}
	if s.typ(at) == js.FunctionToken {
		at--
	}
	if s.typ(at) == js.EqToken || s.typ(at) == js.ColonToken {
		return at - 1
	}
	return -1
}

// param returns a parameter's name.
func (s *script) param(body int32, index int32) string {
	at := s.brs[body].open - 1
	if s.typ(at) == js.ArrowToken {
		at--
	}
	if s.typ(at) != js.CloseParenToken {
		return s.text(at)
	}
	open := s.enclosingBracket(at).open
	for i := open + 1; i < at; i = s.skip(i, at) + 1 {
		if index == 0 {
			return s.text(i)
		}
		index--
	}
	return ""
}

// writtenField reads the field whose tag is written at a token:
//
//	w.uint32(10).string(m.x)
//	T.encode(m.x, w.uint32(18).fork()).ldelim()
//	w.uint32(26).fork(); for (…) w.int32(m.x[i]); w.ldelim()
//	w.uint32(34).fork().uint32(8).int32(k).uint32(18).string(v).ldelim()
func (x *scan) writtenField(e *encoder, at int32, consumed map[int32]bool) *field {
	s := x.script
	tag, ok := s.integer((&reader{script: s}).primary(at + 2))
	next := s.enclosingBracket(at+1).close + 1
	if !ok || tag < 8 || tag&7 == 4 {
		return nil
	}
	f := &field{no: tag >> 3, place: x.place(at)}
	end := s.brs[e.body].close
	word := ""
	if s.typ(next) == js.DotToken {
		word = s.text(next + 1)
	}
	own := s.enclosingBracket(at)
	open := next + 2
	switch {
	case own.kind == '(' && s.is(own.open-1, "encode"):
		f.group = tag&7 == 3
		f.ref = x.ref(s.objectOf(own.open - 1))
		f.entry = s.typ(own.open+1) == js.OpenBraceToken && s.is(own.open+2, "key")
		f.name, f.repeated = x.writtenName(e, own.open+1, at)
	case word == "fork" && s.typ(open+2) == js.DotToken && s.is(open+3, "uint32"):
		x.writtenMap(e, f, open+3, consumed)
		f.name, _ = x.writtenName(e, at, at)
	case word == "fork":
		if !s.mayScanSpan(open, end) {
			return nil
		}
		for i := open; i < end; i++ {
			if s.typ(i) == js.DotToken && (s.is(i+1, "ldelim") || s.is(i+1, "join")) {
				end = i
				break
			}
			if t, _ := x.writerMethod(s.text(i + 1)); s.typ(i) == js.DotToken && t != 0 && s.typ(i+2) == js.OpenParenToken {
				f.scalar = t
			}
		}
		packed := true
		f.repeated, f.packed = true, &packed
		if f.name = s.memberAfter(e, open, end); f.name == "" {
			f.name = s.memberBefore(e, at)
		}
	default:
		t, many := x.writerMethod(word)
		if t == 0 {
			return nil
		}
		f.scalar = t
		f.name, f.repeated = x.writtenName(e, open+1, at)
		if many {
			packed := true
			f.repeated, f.packed = true, &packed
		} else if f.repeated && packable(t) {
			packed := false
			f.packed = &packed
		}
	}
	if f.name == "" {
		x.unresolved("", at, "a tag is written, but not of what field")
		return nil
	}
	x.union(e, f, at)
	return f
}

// writtenName returns the name of the field that is written from a token on, and
// whether one element of it is: m.x[i], or the variable of a loop over m.x.
func (x *scan) writtenName(e *encoder, from, at int32) (name string, repeated bool) {
	s := x.script
	close := s.enclosingBracket(from - 1).close
	if from == at { // a map: its name is in the loop
		return s.memberBefore(e, at), false
	}
	for i := from; i < close; i++ {
		if s.is(i, e.param) && s.typ(i+1) == js.DotToken && s.typ(i-1) != js.DotToken {
			return s.text(i + 2), s.typ(i+3) == js.OpenBracketToken
		}
		if s.is(i, e.param) && s.typ(i+1) == js.OpenBracketToken && s.typ(i+2) == js.StringToken {
			return lexer.Unquote(s.text(i + 2)), s.typ(i+4) == js.OpenBracketToken
		}
	}
	return s.memberBefore(e, at), true
}

// memberAfter returns the member of the message that is named first between two tokens.
func (s *script) memberAfter(e *encoder, from, end int32) string {
	for i := from; i < end; i++ {
		if s.is(i, e.param) && s.typ(i-1) != js.DotToken {
			switch {
			case s.typ(i+1) == js.DotToken:
				return s.text(i + 2)
			case s.typ(i+1) == js.OpenBracketToken && s.typ(i+2) == js.StringToken:
				return lexer.Unquote(s.text(i + 2))
			}
		}
	}
	return ""
}

// memberBefore returns the member of the message that is named last before a token.
func (s *script) memberBefore(e *encoder, at int32) string {
	if !s.mayScanSpan(s.brs[e.body].open, at) {
		return ""
	}
	for i := at; i > s.brs[e.body].open; i-- {
		if s.typ(i) == js.DotToken && s.is(i-1, e.param) && s.typ(i-2) != js.DotToken {
			return s.text(i + 1)
		}
		if s.typ(i) == js.OpenBracketToken && s.is(i-1, e.param) && s.typ(i+1) == js.StringToken {
			return lexer.Unquote(s.text(i + 1))
		}
	}
	return ""
}

// writtenMap reads the key and the value of a map whose key's tag is at a token.
func (x *scan) writtenMap(e *encoder, f *field, at int32, consumed map[int32]bool) {
	s := x.script
	consumed[at] = true
	next := s.enclosingBracket(at+1).close + 1 // .int32(key)
	f.mapKey, _ = x.writerMethod(s.text(next + 1))
	if f.mapKey == 0 {
		f.mapKey = descriptorpb.FieldDescriptorProto_TYPE_STRING
	}
	after := s.enclosingBracket(next+2).close + 1 // .uint32(18)
	if s.typ(after) == js.DotToken && s.is(after+1, "uint32") {
		consumed[after+1] = true
		value := s.enclosingBracket(after+2).close + 1
		if f.scalar, _ = x.writerMethod(s.text(value + 1)); f.scalar != 0 {
			return
		}
	}
	// T.encode(m.x[k], w.uint32(18).fork()).ldelim(): its tag is the next one.
	end := s.brs[e.body].close
	for i := next; i < end && s.step(i); i++ {
		if s.is(i, "uint32") && s.typ(i-1) == js.DotToken {
			consumed[i] = true
			if own := s.enclosingBracket(i); own.kind == '(' && s.is(own.open-1, "encode") {
				f.ref = x.ref(s.objectOf(own.open - 1))
				return
			}
		}
	}
	f.scalar = descriptorpb.FieldDescriptorProto_TYPE_BYTES
}

// writerMethod returns the type that a method of Writer writes, and whether it
// writes a packed list of them.
func (x *scan) writerMethod(name string) (descriptorpb.FieldDescriptorProto_Type, bool) {
	if t := x.scalarNamed(name); t != 0 {
		return t, false
	}
	if one, ok := strings.CutSuffix(name, "s"); ok {
		if t := x.scalarNamed(one); t != 0 && packable(t) {
			return t, true
		}
	}
	return 0, false
}
