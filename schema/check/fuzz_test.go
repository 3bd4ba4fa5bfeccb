package check

import (
	"bytes"
	"slices"
	"testing"

	"unwire/schema"
	"unwire/schema/internal/schematest"
)

// FuzzCheck: no bytes make a check panic, or explain more than there is.
func FuzzCheck(f *testing.F) {
	f.Add([]byte(schematest.Tags(nil).Text(1, "a").Varint(3, 7)), false)
	f.Add([]byte(`{"text":"x","parent":{"more":{"k":null}}}`), true)
	f.Add([]byte{0x33, 8, 1, 0x34}, false)
	f.Add([]byte(`{"id":"x","any":{"@type":"t/in.v1.Held","ok":7},"at":"x","n":1e9,"n":"1","a":"","b":""}`), true)
	f.Add([]byte(schematest.Tags(nil).Text(2, string(schematest.Tags(nil).Text(1, "t/in.v1.Req").Text(2, "\x1a\x02\x08\x01\x1a\x02\x08\x01")))), false)
	chat, inner := chatSchema(f), innerSchema(f)
	f.Fuzz(func(t *testing.T, data []byte, isJSON bool) {
		codec := "proto"
		if isJSON {
			codec = "json"
		}
		for _, s := range []*schema.Schema{chat, inner} {
			ex := talk(codec, data, data)
			if s == inner {
				ex.Service, ex.RPC = "in.v1.In", "Do"
			}
			k := NewChecker(s, Options{})
			k.Add(ex)
			r := k.Report()
			if r.Frames != 2 || r.BytesExplained < 0 || r.BytesExplained > r.Bytes {
				t.Fatalf("%+v", r)
			}
		}
	})
}

// FuzzReadAllowance: no list makes reading or using it panic, and what a report
// has is known to its own list.
func FuzzReadAllowance(f *testing.F) {
	f.Add([]byte("unknown a.* 9 # x\nmethod a.B/*\n"))
	f.Add([]byte(`{"v":1,"unknown":[{"message":"a.B","number":9}]}`))
	r := &Report{Unknown: []UnknownField{{Message: "a.B", Number: 9}}, Contradicted: []Contradiction{{Message: "a.B", Number: 1, Name: "x", Reason: "y"}}}
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := ReadAllowance(bytes.NewReader(data))
		if err != nil {
			return
		}
		c := *r
		c.Unknown, c.Contradicted = slices.Clone(r.Unknown), slices.Clone(r.Contradicted)
		c.Allow(a)
		if n := c.AllowedFindings(); n > 2 || c.Clean() != (n == 2) {
			t.Fatalf("%d allowed", n)
		}
	})
}
