package render

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"unwire/captures"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/query"
	"unwire/cmd/internal/term"
	"unwire/decode"
	"unwire/decode/conversation"
	"unwire/decode/envelope"
	"unwire/decode/wire"
)

// streamed is an exchange whose frames down are messages.
func streamed(messages ...string) conversation.Resolved {
	ex := &decode.Exchange{Exchange: captures.Exchange{ID: 7}}
	ex.Transport = captures.HTTP
	for i, m := range messages {
		ex.Frames = append(ex.Frames, decode.Frame{Dir: captures.Down, Seq: i, T: time.Duration(i) * time.Millisecond, Frame: envelope.Frame{Data: []byte(m), Raw: []byte(m)}, Tree: wire.Parse([]byte(m), wire.Options{})})
	}
	return conversation.Resolved{Exchange: ex}
}

func folded(t *testing.T, out *term.Output, at conversation.Resolved, notes map[int][]*contract.PlaceNote) []string {
	t.Helper()
	var b bytes.Buffer
	FoldedFrames(out, &b, at, at.Frames, &query.Views{}, func(f *decode.Frame) []*contract.PlaceNote { return notes[f.Seq] })
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}

func TestDeltasOfATextAreOneLine(t *testing.T) {
	at := streamed("\n\x06The wo", "\n\x06rld is", "\n\x08 \x1b[2Jbig", "\x10\x05", "\n\x05again")
	want := []string{
		"Frame numbers, time since the request began, and content (×N: N similar frames in a row):",
		`↓ 0–2          0.0 ms  1 ×3 "The world is \x1b[2Jbig"`,
		`↓ 3            3.0 ms  2 5`,
		`↓ 4            4.0 ms  1 "again"`,
	}
	got := folded(t, &term.Output{}, at, nil)
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, width := range []int{30, 40} {
		for _, line := range folded(t, &term.Output{TTY: true, Width: width, Color: true}, at, nil) {
			if term.Cells(line) > width {
				t.Errorf("%d cells on a terminal of %d: %q", term.Cells(line), width, line)
			}
		}
	}
}

func TestANoteStandsBelowItsFrame(t *testing.T) {
	at := streamed("\n\x06The wo", "\n\x06rld is", "\n\x04 big")
	got := folded(t, &term.Output{}, at, map[int][]*contract.PlaceNote{1: {{Kind: captures.TextNote, Value: "here"}}})
	if len(got) != 4 || !strings.HasPrefix(got[1], "↓ 0–1 ") || got[2] != "    note: here" || !strings.HasPrefix(got[3], "↓ 2 ") {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}

func TestBytesAreShownAsWhatTheyContain(t *testing.T) {
	for data, want := range map[string]string{
		`{"a":[1,2]}`:                          "JSON",
		"line one\nline two":                   "text",
		"\n\x05hello\x12\x05world\x18\x96\x01": "protobuf",
		"\xff\xfe\x00\x01\x02\x03":             "",
		"abc":                                  "",
	} {
		if got := contentsOf([]byte(data)).what; got != want {
			t.Errorf("%q is %q, want %q", data, got, want)
		}
	}
}
