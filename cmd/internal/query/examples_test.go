package query_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/cmd/internal/query"
)

// TestExamplesOf: the values of a field, wherever its message is, the most frequent first, with their places.
func TestExamplesOf(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.uwc")
	s, err := store.Create(path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	proto := "syntax = \"proto3\";\npackage a.v1;\nmessage Item { string name = 1; repeated Item parts = 2; }\nmessage Other { uint32 n = 1; }\nservice A { rpc Get(Item) returns (Other); }\n"
	if err := s.PutDefinition(t.Context(), captures.Definition{Kind: captures.ProtoFile, Name: "a.proto", Data: []byte(proto), Active: true}); err != nil {
		t.Fatal(err)
	}
	media := captures.Headers{{Name: "content-type", Value: "application/proto"}}
	name := func(b []byte, v string) []byte {
		return protowire.AppendString(protowire.AppendTag(b, 1, protowire.BytesType), v)
	}
	for i := range 30 {
		rec, err := s.Begin(captures.Exchange{Method: "POST", URL: "https://h/a.v1.A/Get", RequestHeaders: media})
		if err != nil {
			t.Fatal(err)
		}
		body := name(nil, "whole")
		for _, part := range []string{"part", fmt.Sprintf("part %d", i)} {
			body = protowire.AppendBytes(protowire.AppendTag(body, 2, protowire.BytesType), name(nil, part))
		}
		rec.Chunk(captures.Up, body)
		rec.Response(200, media)
		rec.Chunk(captures.Down, protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 7))
		rec.End(captures.Complete, "")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := query.Open(path, store.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	defs, err := c.KeptDefinitions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found, err := c.ExamplesOf(t.Context(), defs, "a.v1.Item", 1)
	if err != nil || found.Messages != 90 || found.With != 90 || found.Values != 90 || len(found.Examples) != 20 || !found.Cut {
		t.Fatalf("%+v, %v", found, err)
	}
	if e := found.Examples[0]; e.Text != `"whole"` || e.Count != 30 || e.Path != "1" || e.Frame != path+"#1/up/0" {
		t.Errorf("%+v", e)
	}
	if e := found.Examples[2]; e.Text != `"part 0"` || e.Count != 1 || e.Path != "2[1].1" {
		t.Errorf("%+v", e)
	}
	if found, err = c.ExamplesOf(t.Context(), defs, "a.v1.Other", 1); err != nil || found.Values != 30 || len(found.Examples) != 1 || found.Examples[0].Text != "7" {
		t.Errorf("%+v, %v", found, err)
	}
}
