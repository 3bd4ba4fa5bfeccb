package decode

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode/utf8"

	"unwire/decode/envelope"
	"unwire/decode/field"
	"unwire/decode/wire"
)

// Fields that are decoded while they are written are those that Fields returns, also if the line has texts that look
// like the place of a tree.
func TestTreesAreWrittenWhole(t *testing.T) {
	// A message, a group, garbage that begins a truncated message, and characters that need several bytes.
	data := []byte("\x0a\x04\x08\x01\x10\x02\x1b\x08\x05\x1c\x12\x0ana\u00efve \u202e\x22\x20\x0a\x03abc\x10\x07")
	inner := wire.Parse([]byte("\x08\x01\x12\x02hi"), wire.Options{})
	f := Frame{Frame: envelope.Frame{Raw: data, Data: data, Event: `"tree":[]`}, Tree: wire.Parse(data, wire.Options{})}
	f.Inner = []Inner{{Node: 1, Encoding: "base64", Data: inner.Data, Tree: inner}, {Node: 1, Encoding: "hex"}}

	line := View{}.Line(&f)
	whole, err := json.Marshal(line)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Tree  json.RawMessage
		Inner []struct{ Tree json.RawMessage }
	}
	if err := json.Unmarshal(whole, &got); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		got    json.RawMessage
		fields []*field.Field
	}{{got.Tree, View{}.Fields(f.Tree)}, {got.Inner[0].Tree, View{}.Fields(inner)}} {
		want, err := json.Marshal(c.fields)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(c.got, want) {
			t.Errorf("the tree is\n%s, want\n%s", c.got, want)
		}
	}
	if !bytes.Contains(got.Tree, []byte(`"cut":`)) || got.Inner[1].Tree != nil {
		t.Errorf("no truncated field, or a tree that does not exist: %s", whole)
	}

	var trees DeferredTrees
	line.DeferTrees(&trees)
	text, err := json.Marshal(line)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(text, []byte(`"fields"`)) {
		t.Errorf("fields are not left out: %s", text)
	}
	var written []byte
	if err := trees.WriteJSON(text, func(piece []byte) error {
		if !utf8.Valid(piece) {
			t.Errorf("a piece ends within a character: %q", piece)
		}
		written = append(written, piece...)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, written); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(compact.Bytes(), whole) {
		t.Errorf("wrote\n%s, want\n%s", written, whole)
	}
}

// An exchange may have a Line for each of its frames, so what decodes the fields of a frame is made when they are written.
func TestLinesAreSmall(t *testing.T) {
	message := []byte("\x08\x01\x12\x03abc")
	f := &Frame{Tree: wire.Parse(message, wire.Options{}), Frame: envelope.Frame{Raw: message, Data: message}}
	var line Line
	if n := testing.AllocsPerRun(100, func() { line = View{}.Line(f) }); n > 2 {
		t.Errorf("a line takes %v allocations, want at most 2", n)
	}
	if text, err := json.Marshal(line); err != nil || !bytes.Contains(text, []byte(`"abc"`)) {
		t.Errorf("%s, %v", text, err)
	}
}
