package agent_test

import (
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"unwire/decode/envelope"
	"unwire/replay/agent/turn"
)

// BenchmarkDelta sends pieces of an answer from a server in this process to a client, over
// TLS and HTTP/2, each in a write of its own as servers send them. cpu-us/delta is the
// processor time of both sides together; the client's is less.
func BenchmarkDelta(b *testing.B) {
	p := newPeer(b)
	s, c := p.open()
	m := p.definitions.Server()
	m.At("interaction_update", "text_delta").Set("text", strings.Repeat("word ", 4))
	frame := envelope.Append(nil, 0, m.Bytes())
	b.ReportAllocs()
	before := processorTime(b)
	b.ResetTimer()
	go func() {
		for range b.N {
			if _, err := c.w.Write(frame); err != nil {
				return
			}
			c.flush()
		}
		c.end()
	}()
	n := 0
	for {
		event, err := s.Next(b.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			b.Fatal(err)
		}
		if _, ok := event.(turn.Text); ok {
			n++
		}
	}
	b.StopTimer()
	if n != b.N {
		b.Fatalf("%d deltas of %d came", n, b.N)
	}
	b.ReportMetric(float64((processorTime(b)-before).Microseconds())/float64(b.N), "cpu-us/delta")
}

// processorTime is what this process has taken.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
