package loop

import (
	"testing"

	"unwire/decode/transcript"
)

// A call gets the result that the next request has, and the turns that this request repeats are marked.
func TestAdd(t *testing.T) {
	first := &transcript.Transcript{Tools: []transcript.Tool{{ID: "c1", Name: "get", Arguments: `{"a": 1}`, Frames: []int{3}}}}
	second := &transcript.Transcript{
		Answer: "It rains.",
		Tools:  []transcript.Tool{{ID: "c1", Name: "get", Arguments: `{"a":1}`, Earlier: true, Frames: []int{0}, Result: "rain", ResultDir: "up", Paired: "id"}},
		Turns: []transcript.Turn{
			{Role: transcript.User, Dir: "up", Text: "Weather?"}, {Role: "tool_call", Dir: "up", Tool: 1}, {Role: transcript.Assistant, Dir: "down", Text: "It rains."},
		},
	}
	third := &transcript.Transcript{Turns: []transcript.Turn{
		{Role: transcript.User, Dir: "up", Text: "Weather?"}, {Role: transcript.Assistant, Dir: "up", Text: "It rains."}, {Role: transcript.User, Dir: "up", Text: "And tomorrow?"},
	}}
	l := New()
	l.Add(7, first)
	if !Unanswered(first) || first.Continues != 0 {
		t.Errorf("%+v", first)
	}
	l.Add(8, second)
	l.Add(9, third)
	if c := first.Tools[0]; Unanswered(first) || c.Result != "rain" || c.ResultExchange != 8 {
		t.Errorf("%+v", c)
	}
	if second.Continues != 7 || second.Tools[0].Exchange != 7 || !second.Turns[1].Earlier || second.Turns[2].Earlier {
		t.Errorf("%+v", second)
	}
	if third.Continues != 8 || !third.Turns[1].Earlier || third.Turns[2].Earlier {
		t.Errorf("%+v", third)
	}

	// Another call of the same tool is not connected.
	other := &transcript.Transcript{Tools: []transcript.Tool{{ID: "c2", Name: "get", Arguments: `{"a":1}`, Earlier: true}}}
	if l.Add(10, other); other.Continues != 0 {
		t.Errorf("%+v", other)
	}
}
