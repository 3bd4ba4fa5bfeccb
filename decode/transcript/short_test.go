package transcript

import (
	"testing"
)

// Answers of a word or a number, beside what looks no less like one.
func TestShortAnswers(t *testing.T) {
	asked := request("Was it built before the war?")
	thought := []any{agentThought("Looking at the plan, the date "), agentThought("stands in the corner.")}
	text := func(n int, s string) []byte { return sub(1, sub(n, str(1, s))) }
	for _, c := range []struct {
		name, want string
		down       []any
	}{
		{"a number alone", "1889", []any{agentText("1889")}},
		{"a decimal", "3.14", []any{agentText("3.14")}},
		{"yes behind a title", "yes", []any{text(9, "Date of the building"), agentText("yes")}},
		{"and before it", "да", []any{agentText("да"), text(9, "Date of the building")}},
		{"in pieces behind a list of steps", "Lisbon", []any{text(9, "Read the plan"), text(9, "Find the date"), agentText("Lis"), agentText("bon")}},
		{"where the thinking stood", "Kraków", append(thought[:2:2], agentText("Kraków"))},
		{"a word for the end is none", "", []any{sub(1, sub(14, str(1, "stop")))}},
		{"nor is one that stands in each frame", "", []any{sub(1, sub(14, str(1, "embedding"))), sub(1, sub(14, str(1, "embedding"))), sub(1, sub(14, str(1, "embedding")))}},
		{"a table", "| a | b |\n|---|---|\n| 1 | 2 |", []any{agentText("| a | b |\n"), agentText("|---|---|\n"), agentText("| 1 | 2 |")}},
		{"JSON and a word on it", "{\"year\": 1889}\n\nThat is when it was built.", []any{agentText("{\"year\":"), agentText(" 1889}\n\nThat"), agentText(" is when it"), agentText(" was built.")}},
	} {
		tr := Extract(raw(append([]any{asked, "--"}, c.down...)...), Options{})
		if tr.Answer != c.want {
			t.Errorf("%s: %q, want %q\n%s", c.name, tr.Answer, c.want, dump(tr))
		}
	}
}

func TestJSONClass(t *testing.T) {
	for text, want := range map[string]class{
		`{"a":1}`:                         jsonWhole,
		`{"a":1`:                          jsonPart,
		`{"a":1}{"b":2}`:                  jsonPart,
		"{\"a\":1}\n\nThat is what it is": plain,
		`["x"] is how a list begins`:      plain,
	} {
		if got := classOf(text); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}

// A reason for the end beside the last piece is no kind of text; a flag that is
// there from the start, or comes with a sentence of its own, is.
func TestEndMark(t *testing.T) {
	chunk := func(s string, end int) []byte {
		if end == 0 {
			return sub(1, str(1, s))
		}
		return sub(1, str(1, s), num(2, end))
	}
	for _, c := range []struct {
		name, answer, thinking string
		down                   []any
	}{
		{"a finish reason", "It holds the entry point.", "", []any{chunk("It holds", 0), chunk(" the entry", 0), chunk(" point.", 1)}},
		{"of two pieces", "It holds the entry point.", "", []any{chunk("It holds the", 0), chunk(" entry point.", 1)}},
		{"a flag of thinking", "It does.", "The user asks about a file. I should look.", []any{chunk("The user asks", 1), chunk(" about a file.", 1), chunk(" I should look.", 1), chunk("It", 0), chunk(" does.", 0)}},
	} {
		tr := Extract(raw(append([]any{request("What is in main.go?"), "--"}, c.down...)...), Options{})
		if tr.Answer != c.answer || tr.Thinking != c.thinking {
			t.Errorf("%s: %q and %q\n%s", c.name, tr.Answer, tr.Thinking, dump(tr))
		}
	}
}
