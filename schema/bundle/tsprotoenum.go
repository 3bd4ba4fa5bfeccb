package bundle

import (
	"fmt"
	"strings"

	"github.com/tdewolff/parse/v2/js"

	"unwire/schema/bundle/lexer"
)

// unrecognized is the value that ts-proto adds to enums, with number -1.
const unrecognized = "UNRECOGNIZED"

// tsProtoEnums reads the enums of ts-proto that are there as such: as
// TypeScript compiles them, or as objects of numbers.
func (x *scan) tsProtoEnums(origins map[int32]origin) {
	s := x.script
	for _, at := range s.anchors[anchorUnrecognized] {
		own := s.enclosingBracket(at)
		if own.kind == '{' && !own.fn && s.typ(at+1) == js.ColonToken && (s.typ(at-1) == js.CommaToken || own.open == at-1) {
			o := s.expr(own.open)
			ids, words := s.boundNames(own.open)
			x.tsProtoEnumNamed(own.open, s.numbersIn(o), append(ids, own.open), words, origins)
			continue
		}
		if own.kind != '[' || s.typ(own.close+1) != js.EqToken {
			continue
		}
		// (function (E) { E[E["A"] = 0] = "A"; … })(E || (E = {}))
		for br, n := own.parent, 0; br != 0 && n < maxSkew; br, n = s.brs[br].parent, n+1 {
			call := s.brs[br].close + 1
			if s.brs[br].kind == '{' && s.typ(call) == js.CloseParenToken {
				continue
			}
			if s.typ(call) != js.OpenParenToken {
				continue
			}
			arg := s.expr(call + 1)
			ids, words := s.referencedNames(arg, 0)
			// let E = function (E) { … }({})
			more, further := s.boundNames(s.functionAt(br))
			ids, words = append(ids, more...), append(words, further...)
			x.tsProtoEnumNamed(own.open, s.membersIn(s.brs[br].open, s.brs[br].close), ids, words, origins)
			break
		}
	}
}

// functionAt returns the first token of the function whose body is a bracket, or
// of the bracket around it.
func (s *script) functionAt(br int32) int32 {
	at := s.brs[br].open
	if s.brs[br].kind != '{' || s.typ(at-1) != js.CloseParenToken {
		return at
	}
	at = s.enclosingBracket(at-1).open - 1
	if s.typ(at) != js.FunctionToken {
		at--
	}
	return at
}

// referencedNames are the bindings and the members that an expression names.
func (s *script) referencedNames(n *node, depth int) (ids []int32, words []string) {
	if n == nil || depth > maxSkew {
		return nil, nil
	}
	if n.kind == nMember {
		return nil, []string{n.str}
	}
	if n.kind == nIdent {
		if b, ok := s.lookup(n.at, n.str); ok {
			return []int32{b.tok}, nil
		}
		return nil, nil
	}
	for _, k := range n.kids {
		more, further := s.referencedNames(k, depth+1)
		ids, words = append(ids, more...), append(words, further...)
	}
	return ids, words
}

// tsProtoEnumNamed enters an enum.
func (x *scan) tsProtoEnumNamed(at int32, values []enumValue, ids []int32, words []string, origins map[int32]origin) {
	if len(values) == 0 {
		return
	}
	word, pkg := x.exportedName(ids, words, origins)
	if pkg == "" {
		pkg = x.packageBefore(at)
	}
	if !validName(word) || len(word) <= 2 && x.minified() {
		word = placeholder("Enum", fmt.Sprint(values))
		x.unresolved(dotted(pkg, word), at, "its name did not survive minification; it is one that was made up")
	}
	e := &enum{def: x.def(dotted(pkg, word), formTSProto, at, ids)}
	for _, v := range values {
		if v.name != unrecognized {
			e.values = append(e.values, v)
		}
	}
	for _, id := range ids {
		x.tsEnumIDs[id] = true
	}
	x.enums = append(x.enums, e)
}

// tsProtoEnum returns a reference to the enum that a function reads,
// colorFromJSON: switch (o) { case 1: case "RED": return Color.RED; …, and enters
// the enum if it is not there as such.
func (x *scan) tsProtoEnum(call *node, origins map[int32]origin, done map[int32]bool) *ref {
	s := x.script
	t := s.follow(call)
	r := x.ref(call)
	r.enum = true
	if t.end.kind != nFunc { // of another file
		if word := strings.TrimSuffix(r.local, fromJSON); word != "" {
			r.local = strings.ToUpper(word[:1]) + word[1:]
		}
		return r
	}
	if id := x.returned(t.end.body); id >= 0 {
		r.ids = append([]int32{id}, r.ids...)
		return r
	}
	if done[t.end.at] {
		return r
	}
	done[t.end.at] = true
	var words []string
	if call.kind == nMember {
		words = append(words, call.str)
	}
	word, pkg := x.exportedName(t.ids, words, origins)
	if pkg == "" {
		pkg = x.packageBefore(t.end.at)
	}
	b := s.brs[t.end.body]
	if !s.mayScan(t.end.body) {
		return r
	}
	var values []enumValue
	for i := b.open; i < b.close; i++ {
		if s.typ(i) != js.CaseToken {
			continue
		}
		n := (&reader{script: s}).assign(i + 1)
		no, ok := s.integer(n)
		if !ok || s.typ(n.end) != js.ColonToken || s.typ(n.end+1) != js.CaseToken || s.typ(n.end+2) != js.StringToken {
			continue
		}
		if name := lexer.Unquote(s.text(n.end + 2)); name != unrecognized {
			values = append(values, enumValue{name, int32(no)})
		}
	}
	if short, ok := strings.CutSuffix(strings.TrimRight(word, "0123456789"), fromJSON); ok && short != "" {
		word = strings.ToUpper(short[:1]) + short[1:]
	} else {
		word = placeholder("Enum", fmt.Sprint(values))
		x.unresolved(dotted(pkg, word), t.end.at, "its name did not survive minification; it is one that was made up")
	}
	x.enums = append(x.enums, &enum{def: x.def(dotted(pkg, word), formTSProto, t.end.at, append(t.ids, t.end.at)), values: values})
	return r
}

// returned returns what stands for the enum whose members a function returns, or
// -1 where none was read.
func (x *scan) returned(body int32) int32 {
	s := x.script
	b := s.brs[body]
	if !s.mayScan(body) {
		return -1
	}
	for i := b.open; i < b.close; i++ {
		if s.typ(i) != js.ReturnToken {
			continue
		}
		n := s.expr(i + 1)
		if n.kind != nMember {
			continue
		}
		t := s.follow(n.kids[0])
		for _, id := range t.ids {
			if x.tsEnumIDs[id] {
				return id
			}
		}
	}
	return -1
}

// packageOfEnums gives the enums of a script that names no package that of its
// messages, if these have one.
func (x *scan) packageOfEnums() {
	pkg := ""
	for _, m := range x.messages {
		if m.form != formTSProto {
			continue
		}
		if own := packageOf(m.full); pkg == "" {
			pkg = own
		} else if own != pkg {
			return
		}
	}
	for _, e := range x.enums {
		if e.form == formTSProto && packageOf(e.full) == "" {
			e.full = dotted(pkg, e.full)
		}
	}
}
