package transcript

import (
	"fmt"
	"strings"
	"testing"
)

// bigTalk is a conversation of many frames: a long prompt, results of tools that
// are longer than the answer, and the answer in pieces with their places.
func bigTalk(frames, bytes int) labelled {
	var l labelled
	m := newMaker(1)
	m.send(0, msg{{"ask", msg{{"text", "Why is the count off by one?"}, {"file", strings.Repeat(m.rust(), bytes/4000)}}}})
	var answer strings.Builder
	page := strings.Repeat(m.output(), bytes/frames/45)
	for i := range frames {
		piece := fmt.Sprintf(" word%d and so", i)
		m.send(1, msg{{"delta", msg{{"text", piece}, {"at", answer.Len()}}}})
		answer.WriteString(piece)
		if i%2 == 0 {
			m.send(1, msg{{"log", msg{{"level", i % 3}, {"line", page}}}})
		}
	}
	l.answer, l.ex = answer.String(), m.ex
	return l
}

// BenchmarkLarge extracts from conversations of 5,000 and 10,000 frames: twice the
// bytes are to take twice the time.
func BenchmarkLarge(b *testing.B) {
	for _, frames := range []int{5_000, 10_000} {
		l := bigTalk(frames, 14_000*frames)
		b.Run(fmt.Sprint(frames), func(b *testing.B) {
			size := 0
			for i := range l.ex.Frames {
				size += len(l.ex.Frames[i].Data)
			}
			b.SetBytes(int64(size))
			for b.Loop() {
				if t := Extract(l.ex, Options{}); strings.TrimSpace(t.Answer) != strings.TrimSpace(l.answer) {
					b.Fatalf("answer %.60q, %d bytes; want %d", t.Answer, len(t.Answer), len(l.answer))
				}
			}
		})
	}
}
