package kind

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"unwire/decode/internal/samples"
	"unwire/decode/wire"
)

// TestPooledEvidenceDecides: what one frame cannot tell, the others do, and a
// node is never read in a way that its own bytes refute.
func TestPooledEvidenceDecides(t *testing.T) {
	ev := NewEvidence()
	for i := range 40 {
		if err := ev.Add("R", field([]byte(fmt.Sprintf("file %d of many", i)))); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		payload string
		want    wire.Kind
	}{
		{"", wire.KindString}, // alone, an empty payload is rather a message
		{"image.png", wire.KindString},
		{"\xff\xfe\x00\x81", wire.KindBytes}, // no text, whatever the others are
	} {
		tree := wire.Parse(field([]byte(c.payload)), wire.Options{})
		if got := NewReader(tree, ev.Root("R")).Readings(1); got[0].Kind != c.want {
			t.Errorf("%q: %s", c.payload, describe(got))
		}
	}
	if got := readingsOf(wire.Parse(field(nil), wire.Options{}), 1); got[0].Kind != wire.KindMessage {
		t.Errorf("alone: %s", describe(got))
	}
	f := fieldAt(ev.Root("R"), 1)
	if f == nil || fieldAt(ev.Root("R"), 1, 2) != nil || fieldAt(ev.Root("R"), 9) != nil {
		t.Error("At")
	}
	list := f.readings()
	Costs{}.explain(f, list)
	if r := list[0]; r.Kind != wire.KindString || r.P < 0.9 || len(r.Why) < 2 || r.Why[0].Weight < 10 {
		t.Errorf("%+v", r)
	}
}

// Files are read as bytes, and their formats are remarked on.
func TestFilesAreBytes(t *testing.T) {
	for what, content := range samples.Contents() {
		for want, p := range samples.Files(t, content) {
			if len(p) == 0 {
				continue // snappy writes nothing of nothing
			}
			message := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), p)
			tree := wire.Parse(message, wire.Options{})
			r := NewReader(tree, nil)
			is, _, prob := r.Best(tree.Nodes[0].First)
			if is != wire.KindBytes || prob < 0.9 {
				t.Errorf("%s of %s is read as %s %.2f: %x", want, what, is, prob, p)
			}
			if got := r.Remark(tree.Nodes[0].First, is, "bytes").Form; got != want {
				t.Errorf("%s of %s: the remark says %q", want, what, got)
			}
		}
	}
}

// TestManyInvalidNumbers: fields whose number is invalid share no statistics. A Reader of many of them keeps those of
// few, and its types are the ones that it infers from each alone.
func TestManyInvalidNumbers(t *testing.T) {
	for name, one := range map[string]string{"varint": "\x00\x01", "empty": "\x02\x00", "message": "\x02\x02\x08\x01", "text": "\x02\x05hello"} {
		t.Run(name, func(t *testing.T) {
			want := NewReader(wire.Parse([]byte(one), wire.Options{}), nil).Readings(1)
			tree := wire.Parse(bytes.Repeat([]byte(one), 4*maxOwn), wire.Options{})
			r := NewReader(tree, nil)
			costs := len(r.costs)
			for i := range tree.Children(0) {
				_, typ, p := r.Best(i)
				if got := r.Readings(i); !reflect.DeepEqual(got, want) || typ != want[0].Type || p != want[0].P {
					t.Fatalf("node %d: %v, %s %v, want %v", i, got, typ, p, want)
				}
				r.Remark(i, want[0].Kind, typ)
				if r.fields[i] != nil || len(r.own) > maxOwn || len(r.costs) > costs+maxOwn || len(r.parts) > maxOwn {
					t.Fatalf("node %d: the Reader keeps the statistics of %d nodes", i, len(r.own))
				}
			}
		})
	}
}
