// Package jstree reads JavaScript as far as the readers of generated code need it: tokens with matched brackets,
// declarations, and the expressions around the places that are of interest. It parses scripts but never executes
// them.
//
// Tokenize reads all tokens; no grammar applies to the whole script, so a syntax error affects only its
// surroundings. Bind finds the declarations. Anchors are tokens that survive minification and show that the output
// of a code generator may be near. Expr parses the expression at a token, and Follow follows it through names,
// constants, modules and exports to its value. A budget limits the steps, the tokens and the memory that one script
// may cost.
//
//	s := jstree.Tokenize(ctx, "main.js", src)
//	s.Bind()
//	text, ok := s.Str(s.Expr(at)) // the string that the expression at a token evaluates to
//
// The package knows nothing of protobuf.
package jstree

import (
	"bytes"
	"context"
	"slices"
	"sort"

	"github.com/tdewolff/parse/v2/js"

	"unwire/schema/bundle/lexer"
)

// A token is a token of a JavaScript source. White space and comments are left out.
type token struct {
	// Start and end are the byte offsets of the token in the source.
	Start, end uint32
	// Bracket is the index of the innermost bracket around the token. An opening or closing token belongs to
	// its own bracket.
	Bracket int32
	// typ is the type of the token.
	typ js.TokenType
	// nl is set if a line break precedes the token.
	nl bool
}

// A Bracket is a matched pair of (), [], {} or of a template's ${ }.
type Bracket struct {
	// Open and Close are the indices of the opening and closing tokens. The outermost bracket, which is the
	// script as a whole, has -1 and the number of tokens.
	Open, Close int32
	// Parent is the index of the enclosing bracket.
	Parent int32

	// function is the index of the innermost bracket that is a function body and contains, or is, this bracket.
	function int32
	// Kind is the opening character, or 0 for the outermost bracket.
	Kind byte

	// Fn is set if the bracket is the body of a function.
	Fn bool
}

// A Script is a JavaScript source, split into tokens, with its brackets matched as far as possible. All further
// analysis works on tokens, which are referred to by their indices. No grammar applies to the whole script, so
// a syntax error affects only its surroundings.
type Script struct {
	// Name is the path of the script.
	Name string
	// Src is the JavaScript source text that is analyzed.
	Src []byte
	// Toks are the tokens of the script.
	Toks []token
	// Brackets are the brackets of the script. Bracket 0 is the script as a whole.
	Brackets []Bracket

	// Ctx cancels the analysis.
	Ctx context.Context
	// ticks counts the calls of isCanceled since Ctx was last checked.
	ticks int
	// stopped is set once Ctx has ended or Stop was called.
	stopped bool

	// original is the source text before embedded scripts were extracted from its strings.
	original []byte

	// SourceOffset converts a byte offset in Src to one in original.
	SourceOffset func(off uint32) uint32

	// lines are the byte offsets of the beginnings of lines. They are computed on first use.
	lines []uint32

	// Anchors are the indices of the tokens near which generated code may be, by kind of anchor.
	Anchors [anchorKinds][]int32

	// scopes has the declarations of the names in the script.
	scopes

	// Budget counts the work and memory that the analysis of this script has used, because scripts are untrusted
	// input. Once a limit is exceeded, only literals are read and names are no longer resolved.
	Budget
}

// Tok returns the token with index i. For an index out of range it returns a token of type js.ErrorToken.
func (s *Script) Tok(i int32) token {
	if uint(i) < uint(len(s.Toks)) {
		return s.Toks[i]
	}
	end := uint32(len(s.Src))
	return token{Start: end, end: end, typ: js.ErrorToken}
}

// Text returns the source text of the token with index i.
func (s *Script) Text(i int32) string {
	t := s.Tok(i)
	return string(s.Src[t.Start:t.end])
}

// Is reports whether the source text of token i is word.
func (s *Script) Is(i int32, word string) bool {
	t := s.Tok(i)
	return int(t.end-t.Start) == len(word) && string(s.Src[t.Start:t.end]) == word
}

// EnclosingBracket returns the innermost bracket around token i.
func (s *Script) EnclosingBracket(i int32) Bracket { return s.Brackets[s.Tok(i).Bracket] }

// Typ returns the type of token i.
func (s *Script) Typ(i int32) js.TokenType { return s.Tok(i).typ }

// isCanceled reports whether the analysis must end. It checks the context only in every tickEvery-th call.
// After it has returned true, no expressions are parsed or followed, so that loops over tokens end soon.
func (s *Script) isCanceled() bool {
	if s.ticks++; s.ticks >= tickEvery {
		s.ticks = 0
		s.stopped = s.stopped || s.Ctx.Err() != nil
	}
	return s.stopped
}

// Stop ends the analysis, as if the context had ended.
func (s *Script) Stop() { s.stopped = true }

// tickEvery is the number of calls of isCanceled for each check of the context.
const tickEvery = 1024

// Place returns the line and column, both from 1, of the byte offset off in the source.
func (s *Script) Place(off uint32) (line, column int) {
	if s.lines == nil {
		s.lines = []uint32{0}
		for i := 0; ; {
			j := bytes.IndexByte(s.original[i:], '\n')
			if j < 0 {
				break
			}
			i += j + 1
			s.lines = append(s.lines, uint32(i))
		}
	}
	n := sort.Search(len(s.lines), func(i int) bool { return s.lines[i] > off })
	return n, int(off-s.lines[n-1]) + 1
}

// Tokenize splits a script into tokens and matches its brackets. It never fails: bytes that are not a token,
// and brackets that close nothing, are ignored. If ctx ends, the tokens are incomplete. name is the path of the
// script.
func Tokenize(ctx context.Context, name string, src []byte) *Script {
	s := &Script{Ctx: ctx, Name: name, original: src}
	s.Src, s.SourceOffset = lexer.Unevaluate(src)
	// Minified code has about 0.43 tokens for each byte.
	s.Toks = make([]token, 0, len(s.Src)/20*9)
	s.Brackets = make([]Bracket, 0, len(s.Src)/16)
	s.Brackets = append(s.Brackets, Bracket{Open: -1, Kind: 0, Fn: true})
	stack := s.lex()
	for _, b := range stack {
		s.Brackets[b].Close = int32(len(s.Toks))
	}
	s.Tokens, s.size = len(s.Toks), len(s.Src)
	return s
}

// lex reads the tokens. It returns the brackets that are still open at the end.
func (s *Script) lex() (open []int32) {
	open = []int32{0}
	l := lexer.New(s.Src)

	// Before the offset noRegexp, no regular expression ends on the line.
	noRegexp := 0
	for !s.isCanceled() {
		typ := l.Next()
		if typ == js.ErrorToken {
			break
		}
		if typ == js.WhitespaceToken {
			// Check the context in the next call.
			s.ticks += tickEvery - 1
			continue
		}
		if (typ == js.DivToken || typ == js.DivEqToken) && l.At > noRegexp && s.regexpAllowed() {
			if ok, stopped := l.Regexp(); ok {
				typ = js.RegExpToken
				// No regular expression ends on this line, because it was searched to its end.
			} else {
				typ, noRegexp = js.DivToken, stopped
			}
		}
		s.push(typ, uint32(l.Start), uint32(l.At), l.Newline, &open)
	}
	return open
}

// push appends a token and updates stack, the brackets that are open. nl is set if a line break precedes the
// token.
func (s *Script) push(typ js.TokenType, start, end uint32, nl bool, stack *[]int32) {
	at := int32(len(s.Toks))
	top := (*stack)[len(*stack)-1]
	br := top
	switch typ {
	case js.OpenBraceToken, js.OpenParenToken, js.OpenBracketToken, js.TemplateStartToken:
		br = int32(len(s.Brackets))
		b := Bracket{Open: at, Close: -1, Parent: top, function: s.Brackets[top].function, Kind: s.Src[start]}
		if b.Fn = b.Kind == '{' && s.opensFunction(at); b.Fn {
			b.function = br
		}
		s.Brackets = append(s.Brackets, b)
		*stack = append(*stack, br)
	case js.CloseBraceToken, js.CloseParenToken, js.CloseBracketToken, js.TemplateEndToken:
		kind := byte('{')
		switch typ {
		case js.CloseParenToken:
			kind = '('
		case js.CloseBracketToken:
			kind = '['
		case js.TemplateEndToken:
			kind = '`'
		}
		// Brackets that were left open inside end here as well.
		if n := s.matching(*stack, kind); n > 0 {
			br = (*stack)[n]
			for _, open := range (*stack)[n:] {
				s.Brackets[open].Close = at
			}
			*stack = (*stack)[:n]
		}
	}

	if len(s.Toks) == cap(s.Toks) {
		s.grow(start)
	}
	s.Toks = append(s.Toks, token{Start: start, end: end, Bracket: br, typ: typ, nl: nl})

	// Only these can be anchors.
	if typ == js.IdentifierToken || typ == js.StringToken || typ == js.TemplateToken || typ == js.SuperToken || typ == js.NewToken {
		if k := anchorOf(typ, s.Src[start:end]); k != anchorNone {
			s.Anchors[k] = append(s.Anchors[k], at)
		}
	}
}

// grow reserves memory for the remaining tokens, estimated from the number so far, so that they are not copied
// repeatedly. read is the number of bytes tokenized so far.
func (s *Script) grow(read uint32) {
	rest := (len(s.Src) - int(read)) * len(s.Toks) / max(int(read), 1)
	s.Toks = slices.Grow(s.Toks, rest+rest/16+64)
}

// MaxNesting is the maximum number of enclosing brackets that are visited from a token outwards.
const MaxNesting = 4096

// MaxSkew is how many unclosed brackets of other kinds a closing bracket may skip to find its counterpart.
const MaxSkew = 8

// matching returns the position in stack (the open brackets) of the one that a closing bracket of this kind
// closes, or 0.
func (s *Script) matching(stack []int32, kind byte) int {
	for n := len(stack) - 1; n > 0 && n >= len(stack)-MaxSkew; n-- {
		if s.Brackets[stack[n]].Kind == kind {
			return n
		}
	}
	return 0
}

// opensFunction reports whether the brace at the token with index at opens the body of a function, i.e. follows
// parameters or =>.
func (s *Script) opensFunction(at int32) bool {
	switch s.Typ(at - 1) {
	case js.ArrowToken:
		return true
	case js.CloseParenToken:
		switch open := s.Brackets[s.Tok(at-1).Bracket].Open; s.Typ(open - 1) {
		case js.IfToken, js.ForToken, js.WhileToken, js.WithToken, js.SwitchToken, js.CatchToken, js.AwaitToken:
			return false
		}
		return true
	}
	return false
}

// regexpAllowed reports whether a slash at the end of the tokens read so far begins a regular expression rather
// than a division.
func (s *Script) regexpAllowed() bool {
	at := int32(len(s.Toks)) - 1
	if at < 0 {
		return true
	}
	t := s.Tok(at)
	switch t.typ {
	case js.CloseParenToken:
		switch s.Typ(s.Brackets[t.Bracket].Open - 1) {
		case js.IfToken, js.ForToken, js.WhileToken, js.WithToken:
			return true
		}
		return false
	case js.CloseBraceToken:
		return s.isBlock(s.Brackets[t.Bracket].Open)
	case js.CloseBracketToken, js.StringToken, js.TemplateToken, js.TemplateEndToken, js.RegExpToken,
		js.PrivateIdentifierToken, js.IncrToken, js.DecrToken,
		js.ThisToken, js.SuperToken, js.NullToken, js.TrueToken, js.FalseToken:
		return false
	}
	if js.IsNumeric(t.typ) {
		return false
	}

	// Behind a keyword such as return an expression begins, behind a name it does not.
	if js.IsIdentifierName(t.typ) {
		return js.IsReservedWord(t.typ) && s.Typ(at-1) != js.DotToken
	}
	return true
}

// isBlock reports whether the brace at token open begins statements rather than an object literal.
func (s *Script) isBlock(open int32) bool {
	switch s.Typ(open - 1) {
	case js.CloseParenToken, js.SemicolonToken, js.OpenBraceToken, js.CloseBraceToken, js.ElseToken,
		js.DoToken, js.TryToken, js.FinallyToken, js.ArrowToken, js.ErrorToken:
		return true
	}
	return false
}

// HasAnchor reports whether the script has any anchor, i.e. may contain generated code.
func (s *Script) HasAnchor() bool {
	for _, list := range s.Anchors {
		if len(list) > 0 {
			return true
		}
	}
	return false
}

// Reexports reports whether the script re-exports names of other modules.
func (s *Script) Reexports() bool {
	for i := range s.Toks {
		at := int32(i)
		if s.Typ(int32(i)) != js.FromToken || s.Typ(at+1) != js.StringToken {
			continue
		}
		// These are export * from "…" and export {…} from "…".
		if s.Typ(at-1) == js.MulToken && s.Typ(at-2) == js.ExportToken ||
			s.Typ(at-1) == js.CloseBraceToken && s.Typ(s.EnclosingBracket(at-1).Open-1) == js.ExportToken {
			return true
		}
	}
	return false
}

// Minified reports whether the script has lines longer than people write.
func (s *Script) Minified() bool {
	// longLine is the average length in bytes.
	const longLine = 300
	return bytes.Count(s.Src, []byte("\n")) < len(s.Src)/longLine
}

// ComparedBefore returns the name of the last member of an object that is compared between two token indices: b
// in obj.b != null. It returns "" if there is none.
func (s *Script) ComparedBefore(object string, from, at int32) string {
	for i := at - 1; i > from; i-- {
		if s.Is(i, object) && s.Typ(i+1) == js.DotToken && (s.Typ(i+3) == js.NotEqToken || s.Typ(i-1) == js.NotEqToken) {
			return s.Text(i + 2)
		}
	}
	return ""
}
