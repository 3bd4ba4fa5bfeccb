package diff

import (
	"bytes"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"unwire/decode/envelope"
	document "unwire/decode/text"
)

// textMessage is field 1 with a text.
func textMessage(s string) []byte {
	return protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), s)
}

// TestCompareFiles: in envelopes, a text is the same however it is cut into pieces;
// delimited messages are compared one by one.
func TestCompareFiles(t *testing.T) {
	inEnvelopes := func(texts ...string) (b []byte) {
		for _, s := range texts {
			b = envelope.Append(b, 0, textMessage(s))
		}
		return b
	}
	delimited := func(texts ...string) (b []byte) {
		for _, s := range texts {
			b = protowire.AppendBytes(b, textMessage(s))
		}
		return b
	}
	read := func(b []byte, as string) Message {
		t.Helper()
		doc, err := document.Decode(b, document.Options{As: as})
		if err != nil {
			t.Fatal(err)
		}
		m, err := ReadDocument(doc)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	for _, c := range []struct {
		as   string
		a, b []byte
		same bool
	}{
		{"frames", inEnvelopes("A stream ", "of words ", "and more."), inEnvelopes("A stream of ", "words and ", "more."), true},
		{"frames", inEnvelopes("A stream ", "of words."), inEnvelopes("A stream ", "of others."), false},
		{"delimited", delimited("A stream ", "of words ", "and more."), delimited("A stream of ", "words and ", "more."), false},
		{"delimited", delimited("One", "two"), delimited("One", "two"), true},
		{"message", textMessage("One"), textMessage("One"), true},
		{"message", textMessage("One"), textMessage("Two"), false},
	} {
		a, b := read(c.a, c.as), read(c.b, c.as)
		if several := c.as != "message"; a.Several() != several {
			t.Errorf("%s: several messages: %v", c.as, a.Several())
		}
		if changes := Compare(a, b, Options{Volatile: true}); Same(changes) != c.same {
			t.Errorf("%s %q, %q: %+v", c.as, c.a, c.b, changes)
		}
	}
	one := Message{Data: textMessage("One")}
	if changes := Compare(one, read(inEnvelopes("One"), "frames"), Options{}); !Same(changes) {
		t.Errorf("a message against the same in an envelope: %+v", changes)
	}
	if data := textMessage("One"); !bytes.Equal(read(data, "message").Data, data) {
		t.Error("a message is not its document's bytes")
	}
}
