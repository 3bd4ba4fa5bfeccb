package score

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestHostile: inputs that would be slow if anything were looked at again and
// again. The bound is far above what they take.
func TestHostile(t *testing.T) {
	wide := func() []byte {
		var b []byte
		for i := range 60_000 {
			b = append(b, str(1+i, "some text of a field")...)
		}
		return b
	}
	deep := str(1, "text at the bottom of it")
	for range 120 {
		deep = sub(1, deep)
	}
	for name, body := range map[string]any{
		"times without end":   "It is " + strings.Repeat("2026-03-01T10:00:00.", 1<<16),
		"a word without end":  strings.Repeat("a1.", 1<<19),
		"JSON without end":    strings.Repeat("[", 1<<20),
		"JSON, deep":          strings.Repeat(`{"a":`, 5000) + `"text"` + strings.Repeat("}", 5000),
		"JSON, wide":          "[" + strings.TrimSuffix(strings.Repeat(`{"role":"user","content":"Hello, you"},`, 20_000), ",") + "]",
		"fields without end":  wide(),
		"messages in message": deep,
		"text that parses":    str(1, strings.Repeat("b image.png b image.png ", 50_000)),
		"groups":              bytes.Repeat([]byte{0x0b}, 1<<20),
		"lines":               strings.Repeat("x\n", 1<<19),
	} {
		start := time.Now()
		Extract(raw(slices.Concat([]any{"--"}, []any{body, body})...), Options{})
		if d := time.Since(start); d > 10*time.Second {
			t.Errorf("%s: %v", name, d)
		} else {
			t.Logf("%s: %v", name, d)
		}
	}
}
