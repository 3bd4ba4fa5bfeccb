package transcript

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"unwire/captures"
)

// talk makes an exchange of messages in the order given, "↑" before the client's.
func talk(messages ...[]byte) (add func(dir captures.Direction, b []byte), end func() *Transcript) {
	ex := raw()
	seq := [2]int{}
	add = func(dir captures.Direction, b []byte) {
		f := raw(b).Frames[0]
		f.Dir, f.Seq = dir, seq[dir]
		seq[dir]++
		ex.Frames = append(ex.Frames, f)
	}
	for _, b := range messages {
		add(captures.Up, b)
	}
	return add, func() *Transcript { return Extract(ex, Options{}) }
}

// Questions that follow each other on one stream are turns of their own, and so
// are the answers to them.
func TestAskedInTurns(t *testing.T) {
	for _, questions := range [][]string{
		{"What is in main.go?", "And in go.mod?"},
		{"fix the tests", "now run them again", "and commit"},
		{"Explain this.", "Explain it better."},
	} {
		add, end := talk()
		var want, outlined []string
		for i, q := range questions {
			add(captures.Up, request(q))
			if i == 0 {
				add(captures.Down, agentThought("The user asks "))
				add(captures.Down, agentThought("about a file."))
			}
			for _, piece := range []string{"It holds", " the entry", " point", fmt.Sprintf(" number %d.", i)} {
				add(captures.Down, agentText(piece))
			}
			want = append(want, fmt.Sprintf("It holds the entry point number %d.", i))
			outlined = append(outlined, "user "+q, "assistant "+want[i])
		}
		tr := end()
		var got []string
		for _, turn := range tr.Turns {
			if turn.Role != Thinking {
				got = append(got, string(turn.Role)+" "+turn.Text)
			}
		}
		if tr.Answer != strings.Join(want, "\n\n") || fmt.Sprint(got) != fmt.Sprint(outlined) {
			t.Errorf("%q:\nanswer %q\nturns %q\n%s", questions, tr.Answer, got, dump(tr))
		}
	}
}

// What a program calls its model was not said by the user.
func TestModelTitle(t *testing.T) {
	for _, title := range []string{"Composer", "composer", "Composer 1"} {
		add, end := talk(sub(1, sub(2, sub(1, sub(1, str(1, "What is in main.go?"), str(2, messageID)))), sub(3, str(1, "composer-1"), str(4, "Composer 1"), str(5, title))))
		add(captures.Down, agentText("It holds"))
		add(captures.Down, agentText(" the entry"))
		add(captures.Down, agentText(" point."))
		tr := end()
		for _, c := range tr.Candidates {
			if c.Text == title && c.Role != Metadata {
				t.Errorf("%s is taken for %s", title, c.Role)
			}
		}
		if len(tr.Turns) != 2 || tr.Turns[0].Text != "What is in main.go?" {
			t.Errorf("%s: %s", title, outline(tr))
		}
	}
}

// A conversation that is sent with the question is told in its order: what the
// user said, what was answered before, and the question.
func TestHistoryBeforeQuestion(t *testing.T) {
	said := func(kind int, text string) []byte { return sub(1, str(1, text), num(2, kind)) }
	ex := raw(
		slices.Concat(said(1, "Good morning. Which endpoint is this?"), said(2, "Good morning! You are talking to the older one."), said(1, "And does it still answer questions?")),
		"--", sub(2, str(1, "It still answers")), sub(2, str(1, " all of")), sub(2, str(1, " them.")),
	)
	tr := Extract(ex, Options{})
	want := "user up [0] \"Good morning. Which endpoint is this?\"\nassistant up [0] \"Good morning! You are talking to the older one.\"\n" +
		"user up [0] \"And does it still answer questions?\"\nassistant down [0 1 2] \"It still answers all of them.\"\n"
	if got := outline(tr); got != want || tr.Answer != "It still answers all of them." {
		t.Errorf("%swant\n%s%s", got, want, dump(tr))
	}
}
