package edit

import (
	"strings"
	"testing"
)

func TestParseEditText(t *testing.T) {
	for _, c := range []struct{ op, text, want string }{
		{"set", "1.2[3].5=x", ""},
		{"set", "@2 1.3=a=b", ""},
		{"set", "run_request.model.name=", ""},
		{"set", "@0=hex:0a00", "--set @0 =hex:0a00"},
		{"add", "1.5:string=with space", ""},
		{"add", "1.6:[]int32=1,2", ""},
		{"del", "1.7", ""},
		{"del", "@3", "--del @3 "},
		{"raw", "@1 2=0A00", "--set-raw @1 2=0a00"},
		{"set-raw", "@1 2=0A00", "--set-raw @1 2=0a00"},
		{"set", `"a.b"."c d"[0]=1`, ""},
		{"set", `[0].x=1`, ""},
		{"set", `a[1][2].b=1`, ""},
		{"set", `"plain"=1`, "--set plain=1"},
	} {
		e, err := Parse(c.op, c.text)
		if err != nil {
			t.Errorf("%s %s: %v", c.op, c.text, err)
			continue
		}
		want := c.want
		if want == "" {
			want = "--" + c.op + " " + c.text
		}
		if e.String() != want {
			t.Errorf("%s %s: written as %s", c.op, c.text, e)
		}
	}
}

func TestParseEditErrors(t *testing.T) {
	for _, c := range []struct{ op, text, want string }{
		{"move", "1=2", "is not an edit"},
		{"set", "1.2", "the value (=VALUE) is missing"},
		{"del", "1.2=3", "must not have a value"},
		{"retype", "1.2=string", "want the new type behind a colon, as in 1.7:string"},
		{"del", "", "the path is missing"},
		{"add", ":string=x", "the path is missing"},
		{"add", "1:text=x", `the type "text" must be one of string, bytes`},
		{"add", "1:[]string=x", "must be one of"},
		{"raw", "1=0g", "not hex"},
		{"raw", "1:string=00", "this edit must not have a type (:KIND)"},
		{"set", "@x 1=2", `"@x 1=2" must begin with the number of a frame, as in @2`},
		{"set", "1..2=3", "the path is malformed at offset 2: a field is missing before the dot"},
		{"set", "1.=3", "at offset 2: a field is missing after the dot"},
		{"set", "1[x]=3", "is not an index"},
		{"set", "1[2=3", "closing bracket"},
		{"set", "a b=3", "at offset 1: a path cannot contain ' ' here"},
		{"set", `"a=3`, "no closing quote"},
		{"set", "a.[0]=3", "an index must follow its field without a dot"},
		{"set", strings.Repeat("1.", 200) + "1=2", "more than 100 steps"},
	} {
		if _, err := Parse(c.op, c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %q: %v, want %q", c.op, c.text, err, c.want)
		}
	}
}

func FuzzParseEdit(f *testing.F) {
	for _, s := range []string{"1.2[3].5=x", "@2 1.3=a", `"a.b"[0][1].c:string=x`, "1:[]int32=1,2", "@0=", "[0].a=1", ":message=hex:00"} {
		f.Add("set", s, []byte("\x0a\x02\x10\x01"))
		f.Add("add", s, []byte(`{"a":[1,{"b":"c"}]}`))
	}
	f.Add("del", "1.2", []byte("\x0a\x02\x10\x01"))
	f.Add("raw", "1.2=00", []byte("\x0b\x10\x01\x0c"))
	f.Fuzz(func(t *testing.T, op, text string, data []byte) {
		e, err := Parse(op, text)
		if err != nil {
			return
		}
		flag, rest, _ := strings.Cut(e.String(), " ")
		again, err := Parse(strings.TrimPrefix(flag, "--"), rest)
		if err != nil || again.String() != e.String() {
			t.Fatalf("%q is written as %q, which reads as %q, %v", text, e, again, err)
		}
		_, _ = e.applyProto(data, nil) // must not panic, whatever data is
		_, _ = e.applyJSON(data, nil)
	})
}

// TestLongEditError: an error repeats only the beginning of a long edit.
func TestLongEditError(t *testing.T) {
	_, err := Parse("set", strings.Repeat("1.", 1<<19))
	if err == nil || len(err.Error()) > 400 || !strings.Contains(err.Error(), `--set "1.1.`) {
		t.Errorf("%d bytes: %.400v", len(err.Error()), err)
	}
	e := Edit{Op: opSet, Kind: "sint32", Value: strings.Repeat("x", 1<<20)}
	if err := e.CheckValue(); err == nil || len(err.Error()) > 400 {
		t.Errorf("%d bytes: %.400v", len(err.Error()), err)
	}
}
