package bundle

import (
	"unwire/schema/bundle/jstree"
	"unwire/schema/bundle/model"

	"github.com/tdewolff/parse/v2/js"

	"unwire/schema/bundle/lexer"
)

// caseWord is the member whose value names the member of a oneof that is set, in ts-proto's unions.
const caseWord = "$case"

// union makes a field a member of the oneof "kind" if ts-proto represents the oneof as a discriminated union,
// i.e. the encoder reads the field as message.kind.text, or as message.kind.value in the case "text". These
// expressions are near the token with index at, which writes the field's tag.
func (x *scan) union(e *encoder, f *model.Field, at int32) {
	s := x.Script
	if !hasCases(s, e) {
		return
	}

	// The number of tokens before and after the tag that are searched.
	const before, after = 16, 24
	member := ""

	// The expression that is written has the form m.kind.member.
	for i := max(at-before, s.Brackets[e.body].Open); i < min(at+after, s.Brackets[e.body].Close) && member == ""; i++ {
		if s.Is(i, e.param) && s.Typ(i+1) == js.DotToken && s.Is(i+2, f.Name) && s.Typ(i+3) == js.DotToken && !s.Is(i+4, caseWord) && !s.Is(i+4, "length") {
			member = s.Text(i + 4)
		}
	}
	if member == "" {
		return
	}

	// The name of the case is the name of the field.
	for i := at; i > max(s.Brackets[e.body].Open, at-4*before); i-- {
		compared := s.Typ(i-1) == js.CaseToken || s.Typ(i-1) == js.EqEqEqToken || s.Typ(i+1) == js.EqEqEqToken ||
			s.Typ(i-1) == js.EqEqToken || s.Typ(i+1) == js.EqEqToken
		if s.Typ(i) == js.StringToken && compared {
			member = lexer.Unquote(s.Text(i))
			break
		}
	}
	f.Oneof, f.Name = f.Name, member
}

// hasCases reports whether an encoder uses $case, the discriminator (the member that names the variant) of
// ts-proto's unions.
func hasCases(s *jstree.Script, e *encoder) bool {
	if !e.looked && s.MayScan(e.body) {
		e.looked = true
		for i := s.Brackets[e.body].Open; i < s.Brackets[e.body].Close && !e.cases; i++ {
			e.cases = s.Is(i, caseWord)
		}
	}
	return e.cases
}
