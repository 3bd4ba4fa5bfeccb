package event

import (
	"testing"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/envelope"
)

// TestReassemble: messages that events carry cut anywhere are split again, and other events stay as they are.
func TestReassemble(t *testing.T) {
	part := func(seq int, data string) decode.Frame {
		return decode.Frame{Dir: captures.Down, Seq: seq, Frame: envelope.Frame{Event: "PayloadPart", Data: []byte(data)}}
	}
	for _, c := range []struct {
		name         string
		parts, wants []string
	}{
		{"server-sent events", []string{"data:{\"a\":", "1}\n\ndata:{\"a\":2}\n\nda", "ta:{\"a\":3}\n\n"}, []string{`{"a":1}`, `{"a":2}`, `{"a":3}`}},
		{"lines of JSON", []string{"{\"a\":1", "}\n{\"a\":2}", "\n{\"a\":3}\n"}, []string{`{"a":1}`, `{"a":2}`, `{"a":3}`}},
		{"whole values", []string{`{"a":1}`, `{"a":2}`}, []string{`{"a":1}`, `{"a":2}`}},
		{"text", []string{"Hello ", "world"}, []string{"Hello ", "world"}},
	} {
		ex := &decode.Exchange{}
		for i, p := range c.parts {
			ex.Frames = append(ex.Frames, part(i, p))
		}
		got := Reassemble(ex).Frames
		if len(got) != len(c.wants) {
			t.Errorf("%s: %d frames, want %d", c.name, len(got), len(c.wants))
			continue
		}
		for i, want := range c.wants {
			if string(got[i].Data) != want {
				t.Errorf("%s: frame %d is %q, want %q", c.name, i, got[i].Data, want)
			}
		}
	}
}
