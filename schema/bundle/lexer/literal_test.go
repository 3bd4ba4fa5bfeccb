package lexer

import "testing"

func TestUnquote(t *testing.T) {
	for literal, want := range map[string]string{
		`"plain"`:           "plain",
		`'it\'s'`:           "it's",
		`"a\nb\x41\u0042"`:  "a\nbAB",
		`"\u{1f600}"`:       "\U0001f600",
		`"\ud83d\ude00"`:    "\U0001f600",
		`"\101\0"`:          "A\x00",
		"\"one\\\r\nline\"": "oneline",
		"`head ${":          "head ",
		"":                  "",
		`"`:                 "",
	} {
		if got := Unquote(literal); got != want {
			t.Errorf("%s: %q, want %q", literal, got, want)
		}
	}
}
