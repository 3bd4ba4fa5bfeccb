package fieldpath

import (
	"slices"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		text string
		want Path
	}{
		{"", nil},
		{"1", Path{{Name: "1", Index: All}}},
		{"1.2[3].5", Path{{Name: "1", Index: All}, {Name: "2", Index: 3}, {Name: "5", Index: All}}},
		{"run_request.modelName", Path{{Name: "run_request", Index: All}, {Name: "modelName", Index: All}}},
		{"a[0][2]", Path{{Name: "a"}, {Index: 2}}},
		{"[1].a", Path{{Index: 1}, {Name: "a", Index: All}}},
		{`"a.b"."".c`, Path{{Name: "a.b", Index: All}, {Index: All}, {Name: "c", Index: All}}},
		{"1!hex!gzip.2", Path{{Name: "1", Index: All, Layers: "hex!gzip"}, {Name: "2", Index: All}}},
		{"2!json.messages[0]", Path{{Name: "2", Index: All, Layers: "json"}, {Name: "messages"}}},
		{"a[0][1]!gzip", Path{{Name: "a"}, {Index: 1, Layers: "gzip"}}},
		{"1.*.**", Path{{Name: "1", Index: All}, {Name: Any, Index: All}, {Name: AnySteps, Index: All}}},
		{"-1.0x2.größe", Path{{Name: "-1", Index: All}, {Name: "0x2", Index: All}, {Name: "größe", Index: All}}},
	} {
		got, err := parse(c.text, nil)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("parse(%q) = %v, %v, want %v", c.text, got, err, c.want)
		}
		if got.String() != c.text {
			t.Errorf("%q is written as %q", c.text, got)
		}
		cut, rest, err := Cut(c.text + ":string=x.y")
		if err != nil || rest != ":string=x.y" || !slices.Equal(cut, c.want) {
			t.Errorf("Cut(%q) = %v, %q, %v, want %v", c.text+":string=x.y", cut, rest, err, c.want)
		}
	}
}

// What could follow a path belongs to its names where nothing follows.
func TestWholeNames(t *testing.T) {
	p, err := parse("a key.b:c=d", nil)
	if want := (Path{{Name: "a key", Index: All}, {Name: "b:c=d", Index: All}}); err != nil || !slices.Equal(p, want) {
		t.Fatalf("%v, %v", p, err)
	}
	if got := p.String(); got != `"a key"."b:c=d"` {
		t.Errorf("written as %s", got)
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{".", "at offset 0: a field is missing before the dot"},
		{"1..2", "at offset 2: a field is missing before the dot"},
		{"1.", "at offset 2: a field is missing after the dot"},
		{"!gzip", "at offset 0: a field is missing in the path"},
		{"1[", "has no closing bracket"},
		{"1[x]", `"[x]" is not an index, such as [0]`},
		{"1[-1]", "is not an index"},
		{"1[99999999999]", "is not an index"},
		{"1[0]2", "at offset 4: a path cannot contain '2' here"},
		{"a]", "at offset 1: a path cannot contain ']' here; put a name with special characters in double quotes"},
		{`a"b.c]`, "a path cannot contain ']' here"},
		{`"a`, "has no closing quote"},
		{`""[1]`, "an index needs a field before it, as in name[0]"},
		{"a.[0]", "at offset 2: an index must follow its field without a dot, as in name[0]"},
		{"1!", "the name of an encoding, such as base64 or json, is missing"},
		{`1!"hex"`, "the name of an encoding, such as base64 or json, is missing"},
		{"1!hex[0]", "a path cannot contain '[' here"},
		{strings.Repeat("1.", 200) + "1", "more than 100 steps"},
	} {
		if p, err := parse(c.text, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("parse(%q) = %v, %v, want %q", c.text, p, err, c.want)
		}
		if p, _, err := Cut(c.text + "=1"); err == nil && !strings.HasPrefix(c.text, `"`) {
			t.Errorf("Cut(%q) = %v", c.text+"=1", p)
		}
	}
	if p, rest, err := Cut("a b=3"); err == nil || !strings.Contains(err.Error(), "at offset 1: a path cannot contain ' ' here") {
		t.Errorf("Cut = %v, %q, %v", p, rest, err)
	}
}

func TestParseNumbers(t *testing.T) {
	p, err := ParseNumbers("1.2[3].007")
	if err != nil || len(p) != 3 {
		t.Fatalf("%v, %v", p, err)
	}
	for i, want := range []uint64{1, 2, 7} {
		if n, ok := p[i].Number(); n != want || !ok {
			t.Errorf("step %d has number %d, %v", i, n, ok)
		}
	}
	for _, c := range []struct{ text, want string }{
		{"1.x", `path "1.x" at offset 2: "x" is not a field number`},
		{"-1", `"-1" is not a field number`},
		{"18446744073709551615", "is not a field number"},
		{"1.*", `"*" is not a field number`},
		{"[1]", `"[1]" is not a field number`},
		{"1[0][1]", `"[1]" is not a field number`},
		{"1!gzip.2", "!gzip cannot be used in this path"},
		{"1..2", "a field is missing before the dot"},
	} {
		if p, err := ParseNumbers(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("ParseNumbers(%q) = %v, %v, want %q", c.text, p, err, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"1.2[3].5", "18446744073709551615[99999999999]", `a."b.c"[1][2]!hex!gzip.**`, "[0].x", `"".""`, `"\x00\xff"`, "a b:c=d", "1!json",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := parse(s, nil)
		if err != nil {
			return
		}
		again, err := parse(p.String(), nil)
		if err != nil || !slices.Equal(again, p) {
			t.Fatalf("%q: %v is written as %q, which reads as %v, %v", s, p, p.String(), again, err)
		}
		cut, rest, err := Cut(p.String() + "=" + s)
		if err != nil || rest != "="+s || !slices.Equal(cut, p) {
			t.Fatalf("%q: cut as %v, %q, %v", s, cut, rest, err)
		}
		if numbers, err := ParseNumbers(s); err == nil && !slices.Equal(numbers, p) {
			t.Fatalf("%q: %v and %v", s, p, numbers)
		}
	})
}

func TestParsePatternErrors(t *testing.T) {
	for _, s := range []string{"", "1..2", "1[", "1[x]", "[1]", "1[2][3]", "1!gzip.2", "**[1]"} {
		if _, err := ParsePattern(s); err == nil {
			t.Errorf("%q is a pattern", s)
		}
	}
}
