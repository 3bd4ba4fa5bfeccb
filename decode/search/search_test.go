package search

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/envelope"
	"unwire/decode/fieldpath"
	"unwire/decode/wire"
)

func field(number int, payload string) string {
	return string(append(wire.AppendVarint(wire.AppendVarint(nil, uint64(number)<<3|2), uint64(len(payload))), payload...))
}

func frame(seq int, data string) *decode.Frame {
	f := &decode.Frame{Dir: captures.Down, Seq: seq, Frame: envelope.Frame{Raw: []byte(data), Data: []byte(data)}}
	if t := wire.Parse(f.Data, wire.Options{}); t.Err() == nil {
		f.Tree = t
	}
	return f
}

// run searches frames and writes what it finds: FRAME PATH KIND [MATCH].
func run(t testing.TB, q Query, frames ...string) string {
	t.Helper()
	var out []string
	s := newSearcher(q, func(m Match) bool {
		out = append(out, strings.TrimRight(fmt.Sprintf("%v %s %s [%s]", m.Frames, m.Path, m.Kind, m.Value[m.Start:m.End]), " "))
		return true
	})
	for i, f := range frames {
		s.Frame(frame(i, f))
	}
	return strings.Join(out, "; ")
}

func text(t testing.TB, pattern string, fixed, fold bool) Query {
	t.Helper()
	p, err := NewText(pattern, fixed, fold)
	if err != nil {
		t.Fatal(err)
	}
	return Query{Text: p}
}

func TestText(t *testing.T) {
	inner := field(1, "hello there, inner") + field(2, "more")
	gz, err := envelope.Compress("gzip", []byte(inner))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, pattern string
		fixed, fold   bool
		frames        []string
		want          string
	}{
		{"string", "hel+o", false, false, []string{field(1, field(2, "well, hello there"))}, "[0] 1.2 string [hello]"},
		{"repeated", "b", false, false, []string{field(1, "abc") + field(1, "xbz")}, "[0] 1[0] string [b]; [0] 1[1] string [b]"},
		{"twice in a value", "a.", false, false, []string{field(1, "ab ac")}, "[0] 1 string [ab]; [0] 1 string [ac]"},
		{"fixed", "a.b", true, false, []string{field(1, "axb a.b")}, "[0] 1 string [a.b]"},
		{"fold", "GRÜSSE", false, true, []string{field(1, "viele grüsse")}, "[0] 1 string [grüsse]"},
		{"fold fixed", "HeLLo", true, true, []string{field(1, "hEllo hello")}, "[0] 1 string [hEllo]; [0] 1 string [hello]"},
		{"hex", "there", false, false, []string{field(4, hex.EncodeToString([]byte(inner)))}, "[0] 4(hex).1 string [there]"},
		{"base64", "there", false, false, []string{field(4, base64.StdEncoding.EncodeToString([]byte(inner)))}, "[0] 4(base64).1 string [there]"},
		{"gzip", "there", false, false, []string{field(4, string(gz))}, "[0] 4(gzip).1 string [there]"},
		{"json", "there", false, false, []string{field(4, `{"a":[1,{"b":"hello there"}]}`)}, "[0] 4(json).a.1.b json [there]"},
		{"json body", "there", false, false, []string{`{"a":"hello there"}`}, "[0] a json [there]"},
		{"escapes of json", "größer\"", false, false, []string{`{"a":"gr\u00f6\u00dfer\""}`}, "[0] a json [größer\"]"},
		{"plain body", "there", false, false, []string{"hello there, this is no message"}, "[0]  text [there]"},
		{"over two frames", "hello there", false, false, []string{field(1, "well, hel"), field(1, "lo there")}, "[0 1] 1 string [hello there]"},
		{"over four", "abcdef", false, false, []string{field(1, "xab"), field(2, "heartbeat"), field(1, "cd"), field(1, "ef")}, "[0 2 3] 1 string [abcdef]"},
		{"not of other fields", "abcd", false, false, []string{field(1, "ab"), field(2, "cd")}, ""},
		{"once", "ab", false, false, []string{field(1, "xab"), field(1, "cab")}, "[0] 1 string [ab]; [1] 1 string [ab]"},
		{"bytes", "abc", false, false, []string{field(1, "\xff\xfe\x00abc\xff")}, "[0] 1 bytes [61 62 63]"},
	} {
		if got := run(t, text(t, c.pattern, c.fixed, c.fold), c.frames...); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

func TestOthers(t *testing.T) {
	number := func(s string) Query {
		n, err := ParseNumber(s)
		if err != nil {
			t.Fatal(err)
		}
		return Query{Number: n}
	}
	path := func(s string, q Query) Query {
		var err error
		if q.Path, err = fieldpath.ParsePattern(s); err != nil {
			t.Fatal(err)
		}
		return q
	}
	for _, c := range []struct {
		name, in, want string
		q              Query
	}{
		{"varint", "\x08\x2a\x10\x2b", "[0] 1 varint [42 (zigzag 21)]", number("42")},
		{"zigzag", "\x08\x54", "[0] 1 varint [84 (zigzag 42)]", number("42")},
		{"hex", "\x08\x2a", "[0] 1 varint [42 (zigzag 21)]", number("0x2a")},
		{"negative", "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "[0] 1 varint [-1 (unsigned 18446744073709551615, zigzag -9223372036854775808)]", number("-1")},
		{"float", "\x0d\x00\x00\xc0\x3f", "[0] 1 fixed32 [1069547520 (float 1.5)]", number("1.5")},
		{"double", "\x09\x00\x00\x00\x00\x00\x00\x45\x40", "[0] 1 fixed64 [4631107791820423168 (double 42)]", number("42")},
		{"packed", "\x0a\x08\x01\x02\x03\x8e\x02\xac\x02\xad\x02", "", number("299")},
		{"packed float", field(1, "\xcd\xcc\x4c\x3e\x00\x00\xc0\x3f\x00\x00\xe8\xc0\xcd\xcc\x4c\x3b"), "[0] 1 packed [1069547520 (float 1.5)]", number("1.5")},
		{"packed float by path", field(1, "\xcd\xcc\x4c\x3e\x00\x00\xc0\x3f\x00\x00\xe8\xc0\xcd\xcc\x4c\x3b"), "[0] 1 packed [0.2 1.5 -7.25 0.003125]", path("1", Query{})},
		{"in json", `{"a":[4.2e1,41]}`, "[0] a.0 json [4.2e1]", number("42")},
		{"bytes", field(1, field(2, "a\xffb")), "[0] 1.2 bytes [61 ff 62]", Query{Bytes: []byte("a\xffb")}},
		{"bytes over fields", "\x08\x01\x10\x02", "[0] 1 bytes [01 10]", Query{Bytes: []byte("\x01\x10")}},
		{"path", field(1, field(2, "some text")) + field(3, "x"), "[0] 1.2 string [some text]", path("1.2", Query{})},
		{"any step", field(1, "\x10\x05\x18\x06"), "[0] 1.2 varint [5 (zigzag -3)]; [0] 1.3 varint [6 (zigzag 3)]", path("1.*", Query{})},
		{"any steps", field(1, "\x10\x05"), "[0] 1.2 varint [5 (zigzag -3)]", path("**.2", Query{})},
		{"index", "\x08\x01\x08\x02", "[0] 1[1] varint [2 (zigzag 1)]", path("1[1]", Query{})},
		{"member", `{"a":{"b":"c and d"}}`, "[0] a.b json [c and d]", path("a.b", Query{})},
		{"inside", field(4, hex.EncodeToString([]byte("\x0a\x05hello\x10\x05"))), "[0] 4(hex).2 varint [5 (zigzag -3)]", path("4.2", Query{})},
		{"path and pattern", field(1, "ab") + field(2, "ab"), "[0] 2 string [ab]", path("2", text(t, "ab", false, false))},
	} {
		if got := run(t, c.q, c.in); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
	for _, s := range []string{"", "many", "1.2.3", "0x"} {
		if _, err := ParseNumber(s); err == nil {
			t.Errorf("%q is a number", s)
		}
	}
}

func TestHeaders(t *testing.T) {
	ex := &captures.Exchange{URL: "https://h.example/a.B/Run", RequestHeaders: captures.Headers{{Name: "x-a", Value: "Run this"}}, ResponseTrailers: captures.Headers{{Name: "x-b", Value: "rUn"}}}
	var got []string
	text(t, "Run", false, false).searchHeaders(ex, func(m Match) bool {
		got = append(got, m.Kind+" "+m.Path+" "+m.Dir.String())
		return true
	})
	if s := strings.Join(got, "; "); s != "url  up; header x-a up" {
		t.Error(s)
	}
}

// What is found in text that is cut into frames anywhere is found as in one.
func TestAnyCut(t *testing.T) {
	const whole = "The quick brown fox jumps over the lazy dog, größer als 日本語, and once more the fox."
	for cut := 1; cut < len(whole); cut++ {
		for _, pattern := range []string{"brown fox", "größer", "日本語, and", "over the lazy dog"} {
			got := run(t, text(t, pattern, true, false), field(1, whole[:cut]), field(1, whole[cut:]))
			if !strings.Contains(got, "["+pattern+"]") && validCut(whole, cut) {
				t.Errorf("%s, cut at %d: %s", pattern, cut, got)
			}
		}
	}
}

// validCut tells whether both halves are text.
func validCut(s string, at int) bool { return s[at]&0xc0 != 0x80 }

func FuzzSearch(f *testing.F) {
	f.Add([]byte(field(1, "hello")), []byte(field(1, " there")), "lo", uint8(0))
	f.Add([]byte(`{"a":"b"}`), []byte("\x08\x2a"), "42", uint8(3))
	f.Add([]byte(field(4, hex.EncodeToString([]byte("\x0a\x05hello\x10\x05")))), []byte(nil), "1.*", uint8(5))
	f.Fuzz(func(t *testing.T, a, b []byte, what string, mode uint8) {
		var q Query
		var err error
		switch mode % 6 {
		case 0, 1, 2:
			q.Text, err = NewText(what, mode%6 > 0, mode%6 > 1)
		case 3:
			q.Number, err = ParseNumber(what)
		case 4:
			q.Bytes = []byte(what)
		case 5:
			q.Path, err = fieldpath.ParsePattern(what)
		}
		if err != nil {
			return
		}
		s := newSearcher(q, func(m Match) bool {
			if m.Start < 0 || m.End < m.Start || m.End > len(m.Value) || len(m.Frames) == 0 || m.Frames[0] != m.Frame {
				t.Fatalf("%+v", m)
			}
			return true
		})
		s.Frame(frame(0, string(a)))
		s.Frame(frame(1, string(b)))
	})
}

// BenchmarkSearch looks for what is not there in frames of text and numbers.
func BenchmarkSearch(b *testing.B) {
	var frames []*decode.Frame
	total := int64(0)
	for i := range 1000 {
		data := field(1, field(2, fmt.Sprintf("delta %d of an answer that is as long as answers are, ", i))+"\x18\x05") + field(3, strings.Repeat("some more of a text. ", 40))
		frames = append(frames, frame(i, data))
		total += int64(len(data))
	}
	n, err := ParseNumber("424242")
	if err != nil {
		b.Fatal(err)
	}
	p, err := fieldpath.ParsePattern("9.9")
	if err != nil {
		b.Fatal(err)
	}
	for name, q := range map[string]Query{
		"literal": text(b, "not to be found", false, false), "fold": text(b, "not to be found", false, true),
		"regexp": text(b, "not (to|2) be found", false, false), "number": {Number: n}, "path": {Path: p}, "bytes": {Bytes: []byte("\xff\xff")},
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(total)
			for b.Loop() {
				s := newSearcher(q, func(Match) bool { return true })
				for _, f := range frames {
					s.Frame(f)
				}
			}
		})
	}
}
