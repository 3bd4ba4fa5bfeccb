package redact

import (
	"strings"
	"testing"

	"unwire/captures"
)

// TestMessages: secrets are found in each message of a WebSocket by itself, also where
// parts and control messages lie within them.
func TestMessages(t *testing.T) {
	const token = "sk-made-up-0123456789abcdefghijklmnop"
	const text, final = captures.OpText, captures.OpFinal
	for name, c := range map[string]struct {
		chunks []captures.Chunk
		want   []string
	}{
		"one": {
			[]captures.Chunk{{Opcode: text | final, Data: []byte(`{"access_token":"` + token + `"}`)}, {Opcode: text | final, Data: []byte("next")}},
			[]string{`{"access_token":"#"}`, "next"},
		},
		"in parts, with a ping within": {
			[]captures.Chunk{
				{Opcode: text, Data: []byte(`{"access_token":"` + token[:10])},
				{Opcode: captures.OpPing | final, Data: []byte(`{"access_token":"` + token + `"}`)},
				{Data: []byte(token[10:20])},
				{},
				{Opcode: final, Data: []byte(token[20:] + `"} and more`)},
				{Opcode: text | final},
			},
			[]string{`{"access_token":"#`, `{"access_token":"#"}`, "#", "", `#"} and more`, ""},
		},
		"the next is another": {
			[]captures.Chunk{{Opcode: text | final, Data: []byte(`{"access_token":"`)}, {Opcode: text | final, Data: []byte(`harmless words`)}},
			[]string{`{"access_token":"`, "harmless words"},
		},
	} {
		b := NewMessageFilter(New(Options{}))
		var out []*captures.Chunk
		for i := range c.chunks {
			b.Write(&captures.Chunk{Opcode: c.chunks[i].Opcode, Data: append([]byte(nil), c.chunks[i].Data...)})
			if ready := b.Ready(); len(ready) > 0 {
				out = append(out, ready...)
			}
			if c.chunks[i].Opcode&final != 0 && c.chunks[i].Opcode.Kind() < captures.OpClose && b.Holding() {
				t.Errorf("%s: held behind the message's end", name)
			}
		}
		b.Close(false)
		if out = append(out, b.Ready()...); len(out) != len(c.chunks) {
			t.Fatalf("%s: %d chunks", name, len(out))
		}
		for i, k := range out {
			before, after, found := strings.Cut(c.want[i], "#")
			got := string(k.Data)
			if k.Opcode != c.chunks[i].Opcode || len(got) != len(c.chunks[i].Data) || !strings.HasPrefix(got, before) || !strings.HasSuffix(got, after) ||
				!found && got != c.want[i] || strings.Contains(got, token[:10]) || strings.Contains(got, token[10:20]) || strings.Contains(got, token[20:]) {
				t.Errorf("%s: chunk %d is %q, want %q", name, i, got, c.want[i])
			}
		}
	}
}
