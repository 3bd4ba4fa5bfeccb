package jsontree_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"unwire/decode/jsontree"
)

func Example() {
	text := []byte(`{"id": 7, "to": ["ann", "bob"], "id": 1.50}`)
	root, err := jsontree.Parse(text)
	if err != nil {
		fmt.Println(err)
		return
	}
	for v := range root.Items() {
		off, end := v.Span()
		fmt.Printf("%s %s at %d to %d: %s\n", v.Name(), v.Kind(), off, end, v.Raw())
	}
	to := slices.Collect(root.Items())[1]
	fmt.Printf("%s\n", to.Insert(2, jsontree.Quote("cy")))
	// Output:
	// id number at 7 to 8: 7
	// to array at 16 to 30: ["ann", "bob"]
	// id number at 38 to 42: 1.50
	// {"id": 7, "to": ["ann", "bob","cy"], "id": 1.50}
}

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]int64{
		``: 0, `{"a":1,}`: 8, `[1 2]`: 4, `[1]]`: 4, "\"\x01\"": 2, `01`: 2,
		strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001): 10_001,
	} {
		_, err := jsontree.Parse([]byte(text))
		var syntax *json.SyntaxError
		if !errors.As(err, &syntax) || syntax.Offset != want {
			t.Errorf("%.20q: %v, want a syntax error at %d", text, err, want)
		}
	}
	if _, err := jsontree.Parse([]byte(strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000))); err != nil {
		t.Error(err)
	}
}

func TestKindOfZeroValue(t *testing.T) {
	if k := (jsontree.Value{}).Kind(); k != 0 || k.String() != "" {
		t.Error(k)
	}
}

func TestNames(t *testing.T) {
	root, err := jsontree.Parse([]byte(`{"":1, "a\u00e9\"":[2], "` + "\xff" + `":3}`))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for v := range root.All() {
		names = append(names, v.Name())
	}
	if want := []string{"", "", `aé"`, "", "\ufffd"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
	if n := len(slices.Collect(root.Items())); n != 3 {
		t.Error(n)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		` {"a": [1, -2.50e+3, "x\"\\\u0000"], "a": null, "": {}} `, `[]`, `[[],[ ],{ "b" :true}]`, `false`, `"` + "\xff\xc0" + `"`, `-0`, `1e999`, "\n0\t", `{`, `"\ud800"`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		root, err := jsontree.Parse(data)
		if (err == nil) != json.Valid(data) {
			t.Fatalf("%q: %v", data, err)
		}
		if err != nil {
			return
		}
		if out := rewritten(data, root); !bytes.Equal(out, data) {
			t.Errorf("%q is written again as %q", data, out)
		}
		dec := json.NewDecoder(bytes.NewReader(data))
		dec.UseNumber()
		var want any
		if err := dec.Decode(&want); err != nil {
			t.Fatal(err)
		}
		if got := plain(root); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, want %v", data, got, want)
		}
	})
}

// rewritten is the text put together from its values' spans and what is between
// them, which may be nothing but space and punctuation.
func rewritten(data []byte, root jsontree.Value) []byte {
	var out []byte
	at := 0
	upTo := func(off int, allowed string) {
		if off < at || len(bytes.Trim(data[at:off], " \t\r\n"+allowed)) > 0 {
			panic(fmt.Sprintf("%q from %d to %d", data, at, off))
		}
		out = append(out, data[at:off]...)
		at = off
	}
	var write func(v jsontree.Value)
	write = func(v jsontree.Value) {
		name, nameEnd := v.NameSpan()
		off, end := v.Span()
		upTo(name, ",[{")
		out = append(out, data[name:nameEnd]...)
		at = nameEnd
		upTo(off, ":,[{")
		if v.Kind() != jsontree.Array && v.Kind() != jsontree.Object {
			out = append(out, v.Raw()...)
			at = end
			return
		}
		for item := range v.Items() {
			write(item)
		}
		upTo(end, "[]{}")
	}
	write(root)
	upTo(len(data), "")
	return out
}

// plain is the value as encoding/json decodes it.
func plain(v jsontree.Value) any {
	switch v.Kind() {
	case jsontree.Object:
		m := map[string]any{}
		for item := range v.Items() {
			m[item.Name()] = plain(item)
		}
		return m
	case jsontree.Array:
		list := []any{}
		for item := range v.Items() {
			list = append(list, plain(item))
		}
		return list
	case jsontree.String:
		return v.Text()
	case jsontree.Number:
		return json.Number(v.Text())
	case jsontree.Bool:
		return v.Text() == "true"
	}
	return nil
}

func BenchmarkParse(b *testing.B) {
	item := `{"role":"assistant","content":[{"type":"text","text":"A reply of some length, with a \"quote\"."}],"index":17,"done":false},`
	data := []byte("[" + strings.Repeat(item, 1000) + "null]")
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := jsontree.Parse(data); err != nil {
			b.Fatal(err)
		}
	}
}
