package live

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"unwire/decode"
	"unwire/decode/wire"
	"unwire/replay/internal/samples"
	"unwire/replay/live/values"
)

// A live value takes the place of the captured one, and binding it to itself
// changes nothing.
func TestBindToItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree := wire.Parse(samples.Message(t, 3), wire.Options{})
		f := &decode.Frame{Tree: tree}
		f.Data = tree.Data
		for _, l := range values.Leaves(f, nil) {
			b := &Binding{Path: l.Path, FromPath: l.Path, value: l.Value}
			if out, err := b.put(tree.Data, parsed(f)); err != nil || !bytes.Equal(out, tree.Data) {
				t.Fatalf("%s: %x became %x, %v", l.Path, tree.Data, out, err)
			}
		}
	})
}

func parsed(f *decode.Frame) *parsedMessage {
	return &parsedMessage{frame: f, leaves: values.Leaves(f, nil)}
}

func FuzzLeaves(f *testing.F) {
	f.Add([]byte("\x0a\x04\x08\x01\x12\x00\x0a\x02hi"), []byte("\x12\x04\x08\x09\x12\x00"))
	f.Add([]byte(`{"a":{"b":["x",1,null,{"c":true}]},"d.e":"y"}`), []byte(`{"a":[[1],"z"]}`))
	f.Fuzz(func(t *testing.T, up, down []byte) {
		for _, tree := range []bool{true, false} {
			from := &decode.Frame{}
			if from.Data = down; tree {
				from.Tree = wire.Parse(down, wire.Options{})
			}
			to := &decode.Frame{}
			if to.Data = up; tree {
				to.Tree = wire.Parse(up, wire.Options{})
			}
			leaves, theirs := values.Leaves(to, nil), values.Leaves(from, nil)
			const most = 40 // of each: every pair is tried, and each try parses both again
			for _, l := range leaves[:min(len(leaves), most)] {
				for _, d := range theirs[:min(len(theirs), most)] {
					b := &Binding{Path: l.Path, FromPath: d.Path, value: l.Value, json: !tree}
					_, _ = b.put(up, parsed(from)) // must not panic
				}
				b := &Binding{Path: l.Path, FromPath: l.Path, value: l.Value, json: !tree}
				if out, err := b.put(up, parsed(to)); err != nil || !bytes.Equal(out, up) {
					t.Fatalf("%s: %q became %q, %v", l.Path, up, out, err)
				}
			}
		}
	})
}
