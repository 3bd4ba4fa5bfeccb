package jstree

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tdewolff/parse/v2"
	"github.com/tdewolff/parse/v2/js"
)

// referenceTokens are the tokens that another lexer reads. It is asked for a
// regular expression where s has one, and fails at what is no JavaScript.
func referenceTokens(s *Script) (list []string, ok bool) {
	in := parse.NewInputBytes(append(make([]byte, 0, len(s.Src)+1), s.Src...))
	lx := js.NewLexer(in)
	for {
		typ, data := lx.Next()
		switch typ {
		case js.ErrorToken:
			return list, in.Offset() == len(s.Src) && in.Err() != nil
		case js.WhitespaceToken, js.CommentToken, js.LineTerminatorToken, js.CommentLineTerminatorToken:
			continue
		case js.DivToken, js.DivEqToken:
			if s.Typ(int32(len(list))) == js.RegExpToken {
				typ, data = lx.RegExp()
			}
		}
		list = append(list, fmt.Sprintf("%s %s", typ, data))
	}
}

func compareTokens(t *testing.T, name string, src []byte) {
	t.Helper()
	s := Tokenize(t.Context(), name, src)
	want, ok := referenceTokens(s)
	if !ok {
		t.Logf("%s: the other lexer fails after %d tokens", name, len(want))
	}
	for i, w := range want {
		if got := fmt.Sprintf("%s %s", s.Typ(int32(i)), s.Text(int32(i))); got != w {
			line, column := s.Place(s.Tok(int32(i)).Start)
			t.Errorf("%s:%d:%d: token %d is %.80q, want %.80q", name, line, column, i, got, w)
			return
		}
	}
	if ok && len(s.Toks) != len(want) {
		t.Errorf("%s: %d tokens, want %d", name, len(s.Toks), len(want))
	}
}

// TestLexer compares the tokens with those of another lexer.
func TestLexer(t *testing.T) {
	for _, src := range []string{
		"a=b+c-d*e/f%g**h&i|j^k<<l>>m>>>n&&o||p??q?r:s,t;u=>v",
		"a+=1;b-=2;c*=3;d/=4;e%=5;f**=6;g&=7;h|=8;i^=9;j<<=1;k>>=2;l>>>=3;m&&=n;o||=p;q??=r",
		"a==b!=c===d!==e<f>g<=h>=i;++j;--k;~l;!m;n?.o;p?.[0];q?.5:.6;[...r];a--\n-->b\n--> a comment\nc-->d<!--e\nf",
		"0 1 12.5 .5 5. 1e3 1.5E-3 2e+1 0x1F 0b101 0o17 1_000_000 0xff_ff 10n 0x1fn 0n 1..a 1.5.b",
		`"a\"b" 'c\'d' "e\
f" "\\" '\u0041' "` + "\u2028" + `"`,
		"`a``b${c}d${`e${f}g`}h`+`${{a:1}}`+`\\`\\${`+`$`+`${(a,{b})}}`",
		"/a/g;a=/[/]/.b;x=a/b/c;if(a)/b/;(a)/b;a[0]/b;{}/c/;return/d/i;a=b\n/c/d;/\\//u;y=/=/;z=a/=2",
		"// a\nb/* c */d/* e\n */f/**/g//",
		"class A{#a=1;static #b(){return #a in this}}",
		"var ünïcode, \\u0061bc, \\u{62}c, $_1, 变量, a\u200cb;",
		"\ufeffa\u00a0b\u3000c\u2028d\u2029e\r\nf\rg",
		"async await of get set static let yield as from typeof void instanceof in new delete",
	} {
		compareTokens(t, src, []byte(src))
	}
	// The scripts of packages from npm.
	root := "../../extract/testdata/node/node_modules"
	if _, err := os.Stat(root); err != nil {
		t.Skip("the packages of the tests are not installed: make node-deps")
	}
	files := 0
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || files > 400 || !strings.HasSuffix(name, "js") || !strings.HasPrefix(filepath.Ext(name), ".") {
			return err
		}
		info, err := d.Info()
		if err != nil || info.Size() > 1<<20 {
			return err
		}
		src, err := os.ReadFile(name)
		if err == nil && strings.Contains(".js .mjs .cjs", filepath.Ext(name)) {
			files++
			compareTokens(t, name, src)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	t.Logf("%d files", files)
}

// What is no JavaScript is read to its end too, and costs what it cost before it.
func TestLexerGoesOn(t *testing.T) {
	for src, want := range map[string]string{
		"#!/usr/bin/env node\na":     "a",
		"a\x00\x01b @ c \xff\xfe d":  "a b c d",
		"a 'no end\nb \"no end":      "a b",
		"a `no end ${ b":             "a `no end ${ b",
		"a ` b ' c\n d":              "a b d",
		"a /* b":                     "a / * b",
		"1px 017 08 1e 0x \\q":       "1 px 017 08 1 e 0 x q",
		"a = /b\nc":                  "a = / b c",
		"a /= /b\nc":                 "a /= / b c",
		"`a${b}c":                    "`a${ b c",
		"# a":                        "a",
		"f(`${a)} b`":                "f ( `${ a ) } b",
		strings.Repeat("}", 3) + "a": "} } } a",
	} {
		s := Tokenize(t.Context(), "x.js", []byte(src))
		var words []string
		for i := range s.Toks {
			words = append(words, s.Text(int32(i)))
		}
		if got := strings.Join(words, " "); got != strings.TrimSpace(want) {
			t.Errorf("%q: got %q, want %q", src, got, want)
		}
	}
}
