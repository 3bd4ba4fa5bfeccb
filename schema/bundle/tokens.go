package bundle

import (
	"bytes"
	"context"
	"slices"
	"sort"

	"github.com/tdewolff/parse/v2/js"

	"unwire/schema/bundle/lexer"
)

// A token is one significant token of a script: white space and comments are
// left out. br is the innermost bracket that holds it; an opening or closing
// token belongs to its own bracket.
type token struct {
	start, end uint32
	br         int32
	typ        js.TokenType
	nl         bool // a line ended before it
}

// A bracket is a pair of (), [], {} or of a template's ${ }.
type bracket struct {
	// token indices; the outermost has -1 and the number of tokens
	open, close int32
	parent      int32

	// the innermost body of a function that it is or is in
	function int32
	kind     byte

	// the body of a function
	fn bool
}

// A script is a tokenized source with its brackets matched, as far as they do.
// It is what everything else looks at: no grammar has to hold for all of it,
// so that broken JavaScript is read up to its fault and after it.
type script struct {
	name string
	src  []byte
	toks []token
	brs  []bracket

	ctx     context.Context // of the reading
	ticks   int             // calls of ended
	stopped bool            // ctx has ended

	original []byte // before what is evaluated was taken out of its strings

	// Where a byte of src is in original.
	sourceOffset func(off uint32) uint32

	lines []uint32 // starts, when a place was asked for

	anchors [anchorKinds][]int32 // tokens where a codegen's output may be

	scopes // what its names stand for
	budget
}

// tok returns a token. Where there is none it is one that ends the script: every
// token is read by this, so that no index can be out of range.
func (s *script) tok(i int32) token {
	if uint(i) < uint(len(s.toks)) {
		return s.toks[i]
	}
	end := uint32(len(s.src))
	return token{start: end, end: end, typ: js.ErrorToken}
}

func (s *script) text(i int32) string {
	t := s.tok(i)
	return string(s.src[t.start:t.end])
}

func (s *script) is(i int32, word string) bool {
	t := s.tok(i)
	return int(t.end-t.start) == len(word) && string(s.src[t.start:t.end]) == word
}

// enclosingBracket returns the innermost bracket that holds a token.
func (s *script) enclosingBracket(i int32) bracket { return s.brs[s.tok(i).br] }

func (s *script) typ(i int32) js.TokenType { return s.tok(i).typ }

// isCanceled reports whether the reading is to end. It looks at the context once in
// many calls. From then on expressions are no longer read and followed, so that
// what goes over the tokens ends soon.
func (s *script) isCanceled() bool {
	if s.ticks++; s.ticks >= tickEvery {
		s.ticks = 0
		s.stopped = s.stopped || s.ctx.Err() != nil
	}
	return s.stopped
}

// tickEvery is how many calls of ended there are for each look at the context.
const tickEvery = 1024

// place returns the line and the column, from 1, of a byte of the source.
func (s *script) place(off uint32) (line, column int) {
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

// tokenize reads all tokens and matches the brackets. It never fails: what is
// no token is left out, and a bracket that closes nothing is ignored. If ctx
// ends, the tokens end there.
func tokenize(ctx context.Context, name string, src []byte) *script {
	s := &script{ctx: ctx, name: name, original: src}
	s.src, s.sourceOffset = lexer.Unevaluate(src)
	s.toks = make([]token, 0, len(s.src)/20*9) // minified code has 0.43 a byte
	s.brs = make([]bracket, 0, len(s.src)/16)
	s.brs = append(s.brs, bracket{open: -1, kind: 0, fn: true})
	stack := s.lex()
	for _, b := range stack {
		s.brs[b].close = int32(len(s.toks))
	}
	s.tokens, s.size = len(s.toks), len(s.src)
	return s
}

// lex reads the tokens, and returns the brackets that are open at the end.
func (s *script) lex() (open []int32) {
	open = []int32{0}
	l := lexer.New(s.src)
	noRegexp := 0 // up to here slashes divide
	for !s.isCanceled() {
		typ := l.Next()
		if typ == js.ErrorToken {
			break
		}
		if typ == js.WhitespaceToken {
			s.ticks += tickEvery - 1 // look at the context now
			continue
		}
		if (typ == js.DivToken || typ == js.DivEqToken) && l.At > noRegexp && s.regexpAllowed() {
			if ok, stopped := l.Regexp(); ok {
				typ = js.RegExpToken
			} else { // no other on this line: it was looked through to its end
				typ, noRegexp = js.DivToken, stopped
			}
		}
		s.push(typ, uint32(l.Start), uint32(l.At), l.Newline, &open)
	}
	return open
}

func (s *script) push(typ js.TokenType, start, end uint32, nl bool, stack *[]int32) {
	at := int32(len(s.toks))
	top := (*stack)[len(*stack)-1]
	br := top
	switch typ {
	case js.OpenBraceToken, js.OpenParenToken, js.OpenBracketToken, js.TemplateStartToken:
		br = int32(len(s.brs))
		b := bracket{open: at, close: -1, parent: top, function: s.brs[top].function, kind: s.src[start]}
		if b.fn = b.kind == '{' && s.opensFunction(at); b.fn {
			b.function = br
		}
		s.brs = append(s.brs, b)
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
		if n := s.matching(*stack, kind); n > 0 {
			br = (*stack)[n]
			for _, open := range (*stack)[n:] {
				s.brs[open].close = at
			}
			*stack = (*stack)[:n]
		}
	}
	if len(s.toks) == cap(s.toks) {
		s.grow(start)
	}
	s.toks = append(s.toks, token{start: start, end: end, br: br, typ: typ, nl: nl})
	if typ == js.IdentifierToken || typ == js.StringToken || typ == js.TemplateToken || typ == js.SuperToken || typ == js.NewToken {
		if k := anchorOf(typ, s.src[start:end]); k != anchorNone {
			s.anchors[k] = append(s.anchors[k], at)
		}
	}
}

// grow makes room for as many tokens as the rest of the source has, if it is
// like what was read of it, so that they are moved once and not again and again.
func (s *script) grow(read uint32) {
	rest := (len(s.src) - int(read)) * len(s.toks) / max(int(read), 1)
	s.toks = slices.Grow(s.toks, rest+rest/16+64)
}

// maxNesting bounds how far brackets are climbed.
const maxNesting = 4096

// maxSkew is over how many brackets of another kind a closing one is matched.
const maxSkew = 8

// matching returns which open bracket a closing one closes, 0 for none.
func (s *script) matching(stack []int32, kind byte) int {
	for n := len(stack) - 1; n > 0 && n >= len(stack)-maxSkew; n-- {
		if s.brs[stack[n]].kind == kind {
			return n
		}
	}
	return 0
}

// opensFunction says whether the brace that is about to be opened as token at
// is the body of a function: what stands before is ) of parameters, or =>.
func (s *script) opensFunction(at int32) bool {
	switch s.typ(at - 1) {
	case js.ArrowToken:
		return true
	case js.CloseParenToken:
		switch open := s.brs[s.tok(at-1).br].open; s.typ(open - 1) {
		case js.IfToken, js.ForToken, js.WhileToken, js.WithToken, js.SwitchToken, js.CatchToken, js.AwaitToken:
			return false
		}
		return true
	}
	return false
}

// regexpAllowed says whether a slash after what was read begins a regular
// expression; otherwise it divides.
func (s *script) regexpAllowed() bool {
	at := int32(len(s.toks)) - 1
	if at < 0 {
		return true
	}
	t := s.tok(at)
	switch t.typ {
	case js.CloseParenToken:
		switch s.typ(s.brs[t.br].open - 1) {
		case js.IfToken, js.ForToken, js.WhileToken, js.WithToken:
			return true
		}
		return false
	case js.CloseBraceToken:
		return s.isBlock(s.brs[t.br].open)
	case js.CloseBracketToken, js.StringToken, js.TemplateToken, js.TemplateEndToken, js.RegExpToken,
		js.PrivateIdentifierToken, js.IncrToken, js.DecrToken,
		js.ThisToken, js.SuperToken, js.NullToken, js.TrueToken, js.FalseToken:
		return false
	}
	if js.IsNumeric(t.typ) {
		return false
	}
	if js.IsIdentifierName(t.typ) {
		return js.IsReservedWord(t.typ) && s.typ(at-1) != js.DotToken
	}
	return true
}

// isBlock says whether the brace at open begins statements, not an object.
func (s *script) isBlock(open int32) bool {
	switch s.typ(open - 1) {
	case js.CloseParenToken, js.SemicolonToken, js.OpenBraceToken, js.CloseBraceToken, js.ElseToken,
		js.DoToken, js.TryToken, js.FinallyToken, js.ArrowToken, js.ErrorToken:
		return true
	}
	return false
}
