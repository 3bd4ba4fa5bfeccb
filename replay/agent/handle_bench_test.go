package agent

import (
	"strings"
	"testing"

	"unwire/replay/agent/internal/message"
)

// BenchmarkHandle is what the agent itself does for a delta: it parses the message,
// queues the event, and takes it.
func BenchmarkHandle(b *testing.B) {
	d, err := message.Load(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	m := d.Server()
	m.At("interaction_update", "text_delta").Set("text", strings.Repeat("word ", 4))
	data := m.Bytes()
	s := newStream(&Client{definitions: d}, "c", nil)
	b.ReportAllocs()
	for b.Loop() {
		m := d.Server()
		if err := m.Parse(data); err != nil {
			b.Fatal(err)
		}
		if err := s.handle(m); err != nil {
			b.Fatal(err)
		}
		if _, err := s.Next(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
