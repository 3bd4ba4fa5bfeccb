package render

import (
	"bytes"
	"strings"
	"testing"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/envelope"
	"unwire/decode/wire"
)

// messageFrame is a server frame with a message.
func messageFrame(seq int, message []byte) decode.Frame {
	return decode.Frame{Dir: captures.Down, Seq: seq, Tree: wire.Parse(message, wire.Options{}), Frame: envelope.Frame{Raw: message, Data: message}}
}

// The line of a timeline has the first fields of a large message, and the number of the others. Messages that
// differ only in the others are not similar.
func TestTimelineOfLargeMessages(t *testing.T) {
	large := bytes.Repeat([]byte("\x08\x01"), mostNamed+7)
	other := append(bytes.Clone(large[:len(large)-2]), 0x10, 0x01)
	ex := &decode.Exchange{Frames: []decode.Frame{messageFrame(0, large), messageFrame(1, large), messageFrame(2, other)}}
	lines := Timeline(ex, nil)
	if len(lines) != 2 || lines[0].First != 0 || lines[0].Last != 1 || lines[0].Bytes != 2*len(large) {
		t.Fatalf("%d lines, want the first for two frames: %+v", len(lines), lines[0])
	}
	for _, l := range lines {
		if !strings.HasSuffix(l.Summary, ", … 7 more}") || strings.Count(l.Summary, "1") < mostNamed {
			t.Errorf("the summary is %q", l.Summary)
		}
	}
}

// Streamed texts are joined, and frames with equal content are lines of their own if other frames are between them.
func TestTimelineJoinsTexts(t *testing.T) {
	text := func(s string) []byte { return append([]byte{0x0a, byte(len(s))}, s...) }
	number := []byte("\x10\x96\x01")
	ex := &decode.Exchange{Frames: []decode.Frame{
		messageFrame(0, text("made up ")), messageFrame(1, text("text")), messageFrame(2, number), messageFrame(3, number),
		messageFrame(4, text("more")), messageFrame(5, number),
	}}
	var got []string
	for _, l := range Timeline(ex, nil) {
		got = append(got, l.Summary)
	}
	want := []string{`1 "made up text"`, "2", `1 "more"`, "2 150"}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("%q, want %q", got, want)
	}
}
