package transcript

import (
	"bytes"
	"fmt"
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
		if d := time.Since(start); d > time.Minute {
			t.Errorf("%s: %v", name, d)
		} else {
			t.Logf("%s: %v", name, d)
		}
	}
}

// TestHostileStreams: many frames that all want to be compared with each other.
func TestHostileStreams(t *testing.T) {
	calls, numbered, events, kinds := []any{request("What?"), "--"}, []any{"--"}, []any{"--"}, []any{"--"}
	for i := range 4000 {
		id := fmt.Sprintf("toolu_01Ab%xcDe%dfGh", i*104729+7, i*7919)
		calls = append(calls, sub(1, sub(7, str(1, id), str(2, "grep"), str(3, fmt.Sprintf(`{"pattern":"x%d"}`, i)))), sub(1, sub(8, str(1, id+"a"), str(2, strings.Repeat("output of it\n", 30)))))
		var b []byte
		for k := range 40 {
			b = append(b, num(k+1, i%(k+2))...)
		}
		numbered = append(numbered, slices.Concat(b, str(50, "some text ")))
		events = append(events, str(1+i%200, `{"a":"some text that ","b":{"c":"reads on and"}}`))
		kinds = append(kinds, slices.Concat(num(2, i%9), str(1, "Some text.")))
	}
	for name, bodies := range map[string][]any{"calls": calls, "numbers": numbered, "events in strings": events, "kinds": kinds} {
		ex := raw(bodies...)
		start := time.Now()
		tr := Extract(ex, Options{})
		if d := time.Since(start); d > time.Minute {
			t.Errorf("%s: %v", name, d)
		} else {
			if name == "calls" && len(tr.Tools) < 1000 {
				t.Errorf("%d tools", len(tr.Tools))
			}
			t.Logf("%s: %v, %d tools", name, d, len(tr.Tools))
		}
	}
}
