package gateway

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"unwire/replay/agent/turn"
)

func runCutter(c *cutter, events ...turn.Event) (text string, end turn.Ended) {
	for _, event := range events {
		for _, out := range c.add(event) {
			switch e := out.(type) {
			case turn.Text:
				text += e.Text
			case turn.Ended:
				end = e
			}
		}
	}
	return text, end
}

// TestStopText cuts a random text at random places: the answer must end where the first
// stop text begins, wherever the pieces are cut.
func TestStopText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[ab]{0,30}`).Draw(t, "text")
		stops := rapid.SliceOfN(rapid.StringMatching(`[ab]{1,4}`), 1, 3).Draw(t, "stops")
		var events []turn.Event
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
			events = append(events, turn.Text{Text: rest[:n]})
			rest = rest[n:]
		}
		events = append(events, turn.Ended{Reason: turn.Finished})

		// The reference reads byte by byte: the first stop text that is complete ends the
		// answer, of several that end there the one that began first.
		want, reason := text, turn.Finished
		for end := 1; end <= len(text) && reason == turn.Finished; end++ {
			at := -1
			for _, stop := range stops {
				if i := strings.LastIndex(text[:end], stop); i >= 0 && i+len(stop) == end && (at < 0 || i < at) {
					at = i
				}
			}
			if at >= 0 {
				want, reason = text[:at], turn.StoppedBy
			}
		}
		got, end := runCutter(&cutter{stops: stops}, events...)
		// One piece may hold two stop texts of which the longer one begins first but is
		// complete later; either is a right end, but never one that is later than want.
		if end.Reason != reason || len(got) > len(want) || !strings.HasPrefix(want, got) {
			t.Fatalf("stops %q in %q: got %q, %s; want %q, %s", stops, text, got, end.Reason, want, reason)
		}
		if reason == turn.StoppedBy && end.Stop == "" {
			t.Fatalf("the end does not name the stop text")
		}
	})
}

func TestTokenLimit(t *testing.T) {
	t.Parallel()
	text := func(s string) turn.Event { return turn.Text{Text: s} }
	for _, tt := range []struct {
		name   string
		events []turn.Event
		text   string
		reason turn.Reason
	}{
		{"below", []turn.Event{text("a"), turn.Tokens{N: 9}, text("b"), turn.Ended{Reason: turn.Finished}}, "ab", turn.Finished},
		{"reached at the end", []turn.Event{text("a"), turn.Tokens{N: 10}, turn.Ended{Reason: turn.Finished}}, "a", turn.Finished},
		{"exceeded", []turn.Event{text("a"), turn.Tokens{N: 6}, turn.Tokens{N: 6}, text("b"), turn.Ended{Reason: turn.Finished}}, "a", turn.Length},
		{"thinking", []turn.Event{turn.Tokens{N: 10}, turn.Thinking{Text: "x"}}, "", turn.Length},
	} {
		got, end := runCutter(&cutter{limit: 10}, tt.events...)
		if got != tt.text || end.Reason != tt.reason {
			t.Errorf("%s: got %q, %s; want %q, %s", tt.name, got, end.Reason, tt.text, tt.reason)
		}
	}
}

func TestIDs(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 1000 {
		id := newSessionID()
		if len(id) != sessionLength || seen[id] {
			t.Fatalf("newSessionID returned %q", id)
		}
		seen[id] = true
		session, n, ok := sessionOf(callID(id, 123456789))
		if !ok || session != id || n != 123456789 || len(callID(id, 123456789)) > 40 {
			t.Fatalf("sessionOf(callID(%q)) = %q, %d, %v", id, session, n, ok)
		}
	}
	for _, foreign := range []string{"", "call_abc", "toolu_01", "sess_short__call_1", "sess_0123456789aB__call_0", "sess_0123456789aB__call_01", "sess_0123456789a\n__call_1", "sess_0123456789aB__call_", "sess_0123456789aB__call_99999999999999999999"} {
		if _, _, ok := sessionOf(foreign); ok {
			t.Errorf("sessionOf accepts %q", foreign)
		}
	}
}
