package jsonshape

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"unwire/decode/jsontree"
)

// add enters messages, and returns their set.
func add(t interface{ Fatal(...any) }, messages ...string) *Set {
	s := NewSet()
	for _, m := range messages {
		v, err := jsontree.Parse([]byte(m))
		if err != nil {
			t.Fatal(err)
		}
		s.Add("ws://h/ up", "HUp", v)
	}
	return s
}

func text(t interface{ Fatal(...any) }, s *Set) string {
	data, err := json.Marshal(s.Doc())
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// read is the inverse of text.
func read(in string) (*Set, error) {
	var d Doc
	if err := json.Unmarshal([]byte(in), &d); err != nil {
		return nil, err
	}
	return d.Set()
}

// The shapes of parts, merged in any order and through JSON, are that of the whole.
func TestMerge(t *testing.T) {
	t.Parallel()
	message := rapid.Custom(func(t *rapid.T) string {
		m := rapid.MapOfN(
			rapid.SampledFrom([]string{"type", "a", "b", "c", "é"}),
			rapid.SampledFrom([]any{nil, true, 1, 1.5, "join", "leave", []any{1, []any{2}}, []any{map[string]any{"x": 1}}, map[string]any{"y": "z"}}), 0, 5,
		).Draw(t, "message")
		data, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	})
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOf(message).Draw(t, "messages")
		cut := rapid.IntRange(0, len(all)).Draw(t, "cut")
		want := text(t, add(t, all...))
		got := NewSet()
		for _, part := range []*Set{add(t, all[cut:]...), add(t, all[:cut]...)} {
			back, err := read(text(t, part))
			if err != nil {
				t.Fatal(err)
			}
			got.Merge(back)
		}
		if d := cmp.Diff(want, text(t, got)); d != "" {
			t.Error(d)
		}
	})
}

// Deep messages are written and read.
func TestDeep(t *testing.T) {
	t.Parallel()
	for _, m := range []string{
		`{"a":` + strings.Repeat(`[`, 100) + strings.Repeat(`]`, 100) + `}`,
		strings.Repeat(`{"a":`, 100) + `1` + strings.Repeat(`}`, 100),
		strings.Repeat(`{"a":[`, 60) + `1` + strings.Repeat(`]}`, 60),
	} {
		want := text(t, add(t, m))
		if back, err := read(want); err != nil || text(t, back) != want {
			t.Errorf("%.40s: %v", m, err)
		}
	}
}

// What no messages can have left is refused.
func FuzzRead(f *testing.F) {
	f.Add(text(f, add(f, `{"type":"join","a":[{"b":1.5}]}`, `{"type":"leave"}`)))
	f.Add(`{"ws://h/ up":{"name":"HUp","groups":{"x=1":{"objects":-1}}}}`)
	f.Add(`{"ws://h/ up":{"name":"1;","groups":{"":null}}}`)
	f.Fuzz(func(t *testing.T, in string) {
		s, err := read(in)
		if err != nil {
			return
		}
		both := NewSet()
		both.Merge(s)
		both.Merge(s)
		for _, g := range both.Groups() {
			if g.Shape == nil || g.Shape.Objects < 0 || !isName(g.Name) {
				t.Errorf("%+v", g)
			}
		}
	})
}

func TestHostile(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		`{"p":null}`, `{"p":{"name":"","groups":{}}}`, `{"p":{"name":"a b","groups":{}}}`, `{"p":{"name":"A","groups":{"x=1":{}}}}`,
		`{"p":{"name":"A","groups":{"type=\n":{}}}}`, `{"p":{"name":"A","groups":{"":null}}}`, `{"p":{"name":"A","groups":{"":{"objects":-1}}}}`,
		`{"p":{"name":"A","groups":{"":{"members":{"a":null}}}}}`, `{"p":{"name":"A","groups":{"":{"members":{"a":{"kinds":{"null":9007199254740992}}}}}}}`,
	} {
		if _, err := read(in); err == nil {
			t.Errorf("%s is read", in)
		}
	}
}
