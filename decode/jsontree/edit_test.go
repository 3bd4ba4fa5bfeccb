package jsontree_test

import (
	"encoding/json"
	"slices"
	"testing"

	"unwire/decode/jsontree"
)

func TestEdits(t *testing.T) {
	for _, c := range []struct {
		text string
		edit func(v jsontree.Value) []byte
		want string
	}{
		{`[ ]`, func(v jsontree.Value) []byte { return v.Insert(0, []byte("1")) }, `[1 ]`},
		{`[ 2 , 3 ]`, func(v jsontree.Value) []byte { return v.Insert(0, []byte("1")) }, `[ 1,2 , 3 ]`},
		{`[ 2 , 3 ]`, func(v jsontree.Value) []byte { return v.Insert(2, []byte("4")) }, `[ 2 , 3,4 ]`},
		{`{"a": 1}`, func(v jsontree.Value) []byte { return v.Insert(1, []byte(`"b":2`)) }, `{"a": 1,"b":2}`},
		{`{"b": 1}`, func(v jsontree.Value) []byte { return v.Insert(0, []byte(`"a":2`)) }, `{"a":2,"b": 1}`},
		{`[ 1 ]`, func(v jsontree.Value) []byte { return v.Delete(0) }, `[  ]`},
		{`{"a": 1 , "b":2}`, func(v jsontree.Value) []byte { return v.Delete(0) }, `{"b":2}`},
		{`{"a": 1 , "b":2}`, func(v jsontree.Value) []byte { return v.Delete(1) }, `{"a": 1}`},
		{` {"a": 1 } `, func(v jsontree.Value) []byte { return slices.Collect(v.Items())[0].Replace([]byte("null")) }, ` {"a": null } `},
	} {
		root, err := jsontree.Parse([]byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		if got := string(c.edit(root)); got != c.want || !json.Valid([]byte(got)) {
			t.Errorf("%s became %s, want %s", c.text, got, c.want)
		}
	}
}

func TestQuote(t *testing.T) {
	if got := string(jsontree.Quote("<a> \"\n")); got != `"<a> \"\n"` {
		t.Error(got)
	}
}
