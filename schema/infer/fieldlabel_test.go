package infer

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"unwire/decode/wire"
)

// pair is a message of a text and another.
func pair(key, value string) []byte {
	b := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), key)
	return protowire.AppendString(protowire.AppendTag(b, 2, protowire.BytesType), value)
}

// inferOf infers the root R of samples and returns the evidence by field number.
func inferOf(t *testing.T, samples ...[]byte) map[int32]FieldEvidence {
	t.Helper()
	ev := NewEvidence()
	for _, s := range samples {
		if err := ev.Add("R", s); err != nil {
			t.Fatal(err)
		}
	}
	in, err := Infer(ev, Options{})
	if err != nil {
		t.Fatal(err)
	}
	out := map[int32]FieldEvidence{}
	for _, f := range in.Fields {
		if f.Message == in.Roots["R"] {
			out[f.Number] = f
		}
	}
	return out
}

// Objects of which no list has two elements: a pair whose first text is found in other
// fields is a message, one whose first text is nowhere else a map.
func TestMapOfOneEntry(t *testing.T) {
	object := func(key string) []byte {
		var b []byte
		for n := range protowire.Number(24) {
			b = protowire.AppendString(protowire.AppendTag(b, n+1, protowire.BytesType), fmt.Sprintf("text of field %d", n+1))
		}
		return protowire.AppendBytes(protowire.AppendTag(b, 30, protowire.BytesType), pair(key, "some other value"))
	}
	if f := inferOf(t, object("tier-of-service"))[30]; f.Label != Map || f.LabelP > 0.8 || !strings.Contains(f.Settle, "several entries") {
		t.Errorf("of a key that is nowhere else: %+v", f)
	}
	if f := inferOf(t, object("text of field 7"))[30]; f.Label != Singular || f.LabelP > 0.8 || !strings.Contains(f.Settle, "repeated, or a map") {
		t.Errorf("of a key that is another field's text: %+v", f)
	}
}

// The values of a map cannot be packed, however much they look like numbers.
func TestMapOfNumbersIsOfBytes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var list [][]byte
	for range 40 {
		var b []byte
		for i := range 3 {
			var packed []byte
			for range 12 {
				packed = protowire.AppendVarint(packed, 300+uint64(r.IntN(40)))
			}
			b = protowire.AppendBytes(protowire.AppendTag(b, 4, protowire.BytesType), pair(fmt.Sprintf("key %d %d", i, r.IntN(1000)), string(packed)))
		}
		list = append(list, b)
	}
	// Surely numbers: then it is a list of messages, which keeps them.
	if f := inferOf(t, list...)[4]; f.Label != Repeated {
		t.Errorf("of clear numbers: %+v", f)
	}
	list = list[:0]
	for range 40 {
		var b []byte
		for i := range 3 {
			var index []byte // big-endian, so that it is hardly a list of fixed32
			for v := range uint32(1 + r.IntN(9)) {
				index = binary.BigEndian.AppendUint32(index, 3000*v+uint32(r.IntN(3000)))
			}
			b = protowire.AppendBytes(protowire.AppendTag(b, 4, protowire.BytesType), pair(fmt.Sprintf("%d key %d", i, r.IntN(1000)), string(index)))
		}
		list = append(list, b)
	}
	if f := inferOf(t, list...)[4]; f.Type != "map<string, bytes>" {
		t.Errorf("of a map of bytes: %+v", f)
	}
}

// The more often a field was seen once, the surer it is that it is no list.
func TestSingularGetsSurer(t *testing.T) {
	one := protowire.AppendString(protowire.AppendTag(nil, 3, protowire.BytesType), "a text")
	last := 0.0
	for _, n := range []int{1, 10, 100, 3000} {
		list := make([][]byte, n)
		for i := range list {
			list[i] = protowire.AppendVarint(protowire.AppendTag(one[:len(one):len(one)], 5, protowire.VarintType), uint64(i)+7)
		}
		f := inferOf(t, list...)[3]
		if f.Label != Singular || f.LabelP < last {
			t.Errorf("%d samples: %s %.4f, after %.4f", n, f.Label, f.LabelP, last)
		}
		last = f.LabelP
	}
	if last < 0.995 {
		t.Errorf("after 3,000 samples %.4f", last)
	}
}

// What has one field, a JSON document each time, carries it as bytes.
func TestDocumentIsBytes(t *testing.T) {
	document := func(more bool) []byte {
		b := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), `{"kind":"a","n":3}`)
		if more {
			b = protowire.AppendVarint(protowire.AppendTag(b, 2, protowire.VarintType), 300)
		}
		return protowire.AppendBytes(protowire.AppendTag(nil, 9, protowire.BytesType), b)
	}
	for _, c := range []struct {
		more bool
		kind wire.Kind
	}{{false, "bytes"}, {true, "string"}} {
		ev := NewEvidence()
		for range 3 {
			if err := ev.Add("R", document(c.more)); err != nil {
				t.Fatal(err)
			}
		}
		in, err := Infer(ev, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range in.Fields {
			if f.Number == 1 && (f.Kind != c.kind || c.kind == "bytes" && (f.P > 0.6 || len(f.Alternatives) == 0 || f.Alternatives[0].Kind != "string")) {
				t.Errorf("beside another field %v: %+v", c.more, f)
			}
		}
	}
}
