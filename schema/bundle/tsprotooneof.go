package bundle

import (
	"github.com/tdewolff/parse/v2/js"

	"unwire/schema/bundle/lexer"
)

// caseWord is the member by which ts-proto tells the members of a oneof apart,
// if it was asked to write them as unions.
const caseWord = "$case"

// union makes a field that is read of message.kind.text, or of message.kind.value
// in the case "text", one of the oneof kind. What it is written by is around the
// token of its tag.
func (x *scan) union(e *encoder, f *field, at int32) {
	s := x.script
	if !s.hasCases(e) {
		return
	}
	const before, after = 16, 24 // tokens
	member := ""
	for i := max(at-before, s.brs[e.body].open); i < min(at+after, s.brs[e.body].close) && member == ""; i++ {
		if s.is(i, e.param) && s.typ(i+1) == js.DotToken && s.is(i+2, f.name) && s.typ(i+3) == js.DotToken && !s.is(i+4, caseWord) && !s.is(i+4, "length") {
			member = s.text(i + 4)
		}
	}
	if member == "" {
		return
	}
	for i := at; i > max(s.brs[e.body].open, at-4*before); i-- {
		compared := s.typ(i-1) == js.CaseToken || s.typ(i-1) == js.EqEqEqToken || s.typ(i+1) == js.EqEqEqToken ||
			s.typ(i-1) == js.EqEqToken || s.typ(i+1) == js.EqEqToken
		if s.typ(i) == js.StringToken && compared {
			member = lexer.Unquote(s.text(i))
			break
		}
	}
	f.oneof, f.name = f.name, member
}

// hasCases says whether an encoder looks at $case.
func (s *script) hasCases(e *encoder) bool {
	if !e.looked && s.mayScan(e.body) {
		e.looked = true
		for i := s.brs[e.body].open; i < s.brs[e.body].close && !e.cases; i++ {
			e.cases = s.is(i, caseWord)
		}
	}
	return e.cases
}
