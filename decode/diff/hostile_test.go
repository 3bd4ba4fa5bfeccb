package diff

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"unwire/decode/wire"
)

// TestHostile: messages that would be slow to align, or to look at again and
// again. The bound is far above what they take.
func TestHostile(t *testing.T) {
	elements := func(from, n int) msg {
		var m msg
		for i := range n {
			m = append(m, 3, msg{1, sentence(from + i), 2, sentence(from + 2*i)})
		}
		return m
	}
	nested := func(from int) msg {
		m := elements(from, 20)
		for range 6 {
			m = msg{5, m, 5, m}
		}
		return m
	}
	deep := func(s string) msg {
		m := msg{1, s}
		for range 95 {
			m = msg{1, m}
		}
		return m
	}
	var names, others []byte
	for i := range 3000 {
		names = append(names, msg{i + 1, sentence(i)}.bytes()...)
		others = append(others, msg{i + 1, sentence(i + 1)}.bytes()...)
	}
	wide := func(b []byte) []byte { return msg{1, b, 1, b[:len(b)/2], 1, b}.bytes() }
	times := func(day string) []byte {
		return msg{1, strings.Repeat("2026-03-"+day+"T10:00:00.", 50_000)}.bytes()
	}
	for name, c := range map[string][2][]byte{
		"elements, all different":    {elements(0, 5000).bytes(), elements(100_000, 5000).bytes()},
		"elements in elements":       {nested(0).bytes(), nested(100_000).bytes()},
		"depth":                      {deep("some text").bytes(), deep("other text").bytes()},
		"many members":               {wide(names), wide(others)},
		"times without end":          {times("01"), times("02")},
		"groups that are never shut": {bytes.Repeat([]byte{0x0b}, 1<<18), bytes.Repeat([]byte{0x13}, 1<<18)},
	} {
		start := time.Now()
		a, b := wire.Parse(c[0], wire.Options{}), wire.Parse(c[1], wire.Options{})
		n := len(compareTrees(a, b, Options{}))
		if d := time.Since(start); d > time.Minute || n == 0 {
			t.Errorf("%s: %d changes after %v", name, n, d)
		} else {
			t.Logf("%s: %d changes after %v", name, n, d)
		}
	}
	x, y := exchange(), exchange()
	for i := range 4000 {
		x.Frames = append(x.Frames, exchange(delta(sentence(i)), call(sentence(i), sentence(2*i)), tokens(i)).Frames...)
		y.Frames = append(y.Frames, exchange(delta(sentence(i+1)), call(sentence(i+9), sentence(3*i)), tokens(i+1)).Frames...)
	}
	start := time.Now()
	n := len(Exchanges(x, y, Options{}))
	if d := time.Since(start); d > time.Minute {
		t.Errorf("12,000 frames: %d changes after %v", n, d)
	} else {
		t.Logf("12,000 frames: %d changes after %v", n, d)
	}
}
