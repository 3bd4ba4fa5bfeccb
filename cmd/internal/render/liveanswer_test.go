package render

import (
	"strings"
	"testing"

	"unwire/cmd/internal/term"
	"unwire/decode"
	"unwire/decode/transcript"
	"unwire/decode/transcript/follow"
)

// TestAnswerWriter follows two exchanges in turn: each is named when its answer goes on,
// and an answer that was another one is said to be.
func TestAnswerWriter(t *testing.T) {
	var out, talk strings.Builder
	w := AnswerWriter{Out: &term.Output{Writer: &out}, Err: &term.Output{Writer: &talk}}
	exchange := func(id int64) *decode.Exchange {
		ex := &decode.Exchange{}
		ex.ID, ex.Service, ex.RPC = id, "a.B", "C"
		return ex
	}
	var none transcript.Transcript
	for _, u := range []*follow.Update{
		{Exchange: exchange(1), Transcript: &none},
		{Exchange: exchange(1), Transcript: &none, Changed: true, More: "One"},
		{Exchange: exchange(2), Transcript: &none, Changed: true, More: "Two"},
		{Exchange: exchange(1), Transcript: &none, Changed: true, Before: "One", More: " more"},
		{Exchange: exchange(1), Transcript: &none, Changed: true, Before: "One more", More: "Other", Reset: true},
	} {
		if err := w.Update(u); err != nil {
			t.Fatal(err)
		}
	}
	last := &transcript.Transcript{Answer: "Other.", Error: &transcript.Failure{Code: "aborted", Message: "enough"}}
	if err := w.End(&follow.Update{Exchange: exchange(1), Transcript: last, Changed: true, Before: "Other", More: "."}); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "One\nTwo\n…  moreOther.\n"; got != want {
		t.Errorf("wrote %q, want %q", got, want)
	}
	want := "#1 a.B/C\n#2 a.B/C\n#1 a.B/C\n\nunwire: the text above is not the answer. The answer is now:\n#1 ended with the code aborted: enough\n"
	if got := talk.String(); got != want {
		t.Errorf("said %q, want %q", got, want)
	}
}
