package bundle

import (
	"fmt"
	"strings"

	"unwire/schema/bundle/jstree"

	"unwire/schema/bundle/model"

	"github.com/tdewolff/parse/v2/js"

	"unwire/schema/bundle/lexer"
	"unwire/schema/bundle/protoname"
)

// tsProtoEnums extracts the enums of ts-proto that exist as objects: those compiled by TypeScript, or objects
// of numbers. origins maps declarations to exported names.
func (x *scan) tsProtoEnums(origins map[int32]origin) {
	s := x.Script
	for _, at := range s.Anchors[jstree.AnchorUnrecognized] {
		own := s.EnclosingBracket(at)
		if own.Kind == '{' && !own.Fn && s.Typ(at+1) == js.ColonToken && (s.Typ(at-1) == js.CommaToken || own.Open == at-1) {
			o := s.Expr(own.Open)
			ids, words := s.BoundNames(own.Open)
			x.tsProtoEnumNamed(own.Open, numbersIn(s, o), append(ids, own.Open), words, origins)
			continue
		}
		if own.Kind != '[' || s.Typ(own.Close+1) != js.EqToken {
			continue
		}
		// The form is (function (E) { E[E["A"] = 0] = "A"; … })(E || (E = {})).
		for br, n := own.Parent, 0; br != 0 && n < jstree.MaxSkew; br, n = s.Brackets[br].Parent, n+1 {
			call := s.Brackets[br].Close + 1
			if s.Brackets[br].Kind == '{' && s.Typ(call) == js.CloseParenToken {
				continue
			}
			if s.Typ(call) != js.OpenParenToken {
				continue
			}
			arg := s.Expr(call + 1)
			ids, words := s.ReferencedNames(arg, 0)
			// The form is let E = function (E) { … }({}).
			more, further := s.BoundNames(s.FunctionAt(br))
			ids, words = append(ids, more...), append(words, further...)
			x.tsProtoEnumNamed(own.Open, membersIn(s, s.Brackets[br].Open, s.Brackets[br].Close), ids, words, origins)
			break
		}
	}
}

// tsProtoEnumNamed adds a ts-proto enum with the given values. Its name is the one under which the object is
// exported or declared.
func (x *scan) tsProtoEnumNamed(at int32, values []model.EnumValue, ids []int32, words []string, origins map[int32]origin) {
	if len(values) == 0 {
		return
	}
	word, pkg := x.exportedName(ids, words, origins)
	if pkg == "" {
		pkg = x.packageBefore(at)
	}
	if !protoname.Valid(word) || len(word) <= 2 && x.Minified() {
		word = placeholder("Enum", fmt.Sprint(values))
		x.unresolved(protoname.Join(pkg, word), at, "a minifier removed its name, so extract made one up")
	}
	e := &model.Enum{Def: x.def(protoname.Join(pkg, word), model.FormTSProto, at, ids)}
	for _, v := range values {
		if v.Name != jstree.Unrecognized {
			e.Values = append(e.Values, v)
		}
	}
	for _, id := range ids {
		x.tsEnumIDs[id] = true
	}
	x.Enums = append(x.Enums, e)
}

// tsProtoEnum returns a reference to the enum that a function converts from JSON, such as colorFromJSON: switch
// (o) { case 1: case "RED": return Color.RED; …. If the enum does not exist as an object, it is extracted from
// the function. done has the functions already used so.
func (x *scan) tsProtoEnum(call *jstree.Node, origins map[int32]origin, done map[int32]bool) *model.Ref {
	s := x.Script
	t := s.Follow(call)
	r := x.ref(call)
	r.Enum = true

	// The function is in another file.
	if t.End.Kind != jstree.FuncNode {
		if word := strings.TrimSuffix(r.Local, fromJSON); word != "" {
			r.Local = strings.ToUpper(word[:1]) + word[1:]
		}
		return r
	}

	// The function returns members of an enum that was read.
	if id := x.returned(t.End.Body); id >= 0 {
		r.IDs = append([]int32{id}, r.IDs...)
		return r
	}

	// Several fields can use one enum; it is declared once.
	if done[t.End.At] {
		return r
	}
	done[t.End.At] = true

	var words []string
	if call.Kind == jstree.MemberNode {
		words = append(words, call.Str)
	}
	word, pkg := x.exportedName(t.IDs, words, origins)
	if pkg == "" {
		pkg = x.packageBefore(t.End.At)
	}
	b := s.Brackets[t.End.Body]
	if !s.MayScan(t.End.Body) {
		return r
	}

	// The cases pair each number with its name.
	var values []model.EnumValue
	for i := b.Open; i < b.Close; i++ {
		if s.Typ(i) != js.CaseToken {
			continue
		}
		n := (&jstree.Reader{Script: s}).Assign(i + 1)
		no, ok := s.Integer(n)
		if !ok || s.Typ(n.End) != js.ColonToken || s.Typ(n.End+1) != js.CaseToken || s.Typ(n.End+2) != js.StringToken {
			continue
		}
		if name := lexer.Unquote(s.Text(n.End + 2)); name != jstree.Unrecognized {
			values = append(values, model.EnumValue{Name: name, Number: int32(no)})
		}
	}

	// A minified function has lost the name, so the enum gets a made-up one.
	if short, ok := strings.CutSuffix(strings.TrimRight(word, "0123456789"), fromJSON); ok && short != "" {
		word = strings.ToUpper(short[:1]) + short[1:]
	} else {
		word = placeholder("Enum", fmt.Sprint(values))
		x.unresolved(protoname.Join(pkg, word), t.End.At, "a minifier removed its name, so extract made one up")
	}
	x.Enums = append(x.Enums, &model.Enum{Def: x.def(protoname.Join(pkg, word), model.FormTSProto, t.End.At, append(t.IDs, t.End.At)), Values: values})
	return r
}

// returned returns the token of the enum whose members a function returns, or -1 if that enum was not
// extracted. body is the function's body.
func (x *scan) returned(body int32) int32 {
	s := x.Script
	b := s.Brackets[body]
	if !s.MayScan(body) {
		return -1
	}
	for i := b.Open; i < b.Close; i++ {
		if s.Typ(i) != js.ReturnToken {
			continue
		}
		n := s.Expr(i + 1)
		if n.Kind != jstree.MemberNode {
			continue
		}
		t := s.Follow(n.Kids[0])
		for _, id := range t.IDs {
			if x.tsEnumIDs[id] {
				return id
			}
		}
	}
	return -1
}

// packageOfEnums sets the package of ts-proto enums that lack one to that of the script's messages, if these
// have only one.
func (x *scan) packageOfEnums() {
	pkg := ""
	for _, m := range x.Messages {
		if m.Form != model.FormTSProto {
			continue
		}
		if own := protoname.Package(m.Full); pkg == "" {
			pkg = own
		} else if own != pkg {
			return
		}
	}
	for _, e := range x.Enums {
		if e.Form == model.FormTSProto && protoname.Package(e.Full) == "" {
			e.Full = protoname.Join(pkg, e.Full)
		}
	}
}
