package transcript

import (
	"slices"
	"strings"
	"testing"
)

// TestPieces: how the server's pieces make one answer, where they are sent again,
// taken back, mixed with those of others, or no pieces at all.
func TestPieces(t *testing.T) {
	ask := request("When does the ferry leave on weekdays?")
	at := func(place int, text string) []byte { return sub(1, num(2, place), str(5, text)) }
	counted := func(n int, text string) []byte { return sub(3, num(1, n), str(4, text)) }
	of := func(index int, text string) []byte { return sub(2, num(1, index), sub(2, str(1, text))) }
	line := func(level int, text string) []byte { return sub(9, num(1, level), str(2, text)) }
	retry := sub(7, num(1, 250))
	for _, c := range []struct {
		name, want string
		down       []any
	}{
		{"written again from a place", "The ferry leaves at nine and at ten.", []any{at(0, "The ferry"), at(9, " leaves"), at(16, " at ni"), retry, at(9, " leaves"), at(16, " at"), at(19, " nine"), at(24, " and at"), at(31, " ten.")}},
		{"places in runes", "Das Schiff fährt täglich um neun.", []any{at(0, "Das Schiff"), at(10, " fährt"), at(16, " täglich"), retry, at(16, " täglich"), at(24, " um"), at(27, " neun.")}},
		{"sent again with the same number", "The ferry leaves at nine.", []any{counted(1, "The"), counted(2, " ferry"), counted(3, " leaves"), retry, counted(2, " ferry"), counted(3, " leaves"), counted(4, " at"), counted(5, " nine.")}},
		{"begun again", "The ferry leaves at nine.", []any{sub(3, str(4, "The")), sub(3, str(4, " ferry")), sub(3, str(4, " leaves")), retry, sub(3, str(4, "The ferry")), sub(3, str(4, " leaves")), sub(3, str(4, " at nine."))}},
		{"the first of two candidates", "The ferry leaves at nine.", []any{of(0, "The"), of(1, "It leaves"), of(0, " ferry"), of(1, " at nine"), of(0, " leaves"), of(1, " and ten."), of(0, " at nine.")}},
		{"a log beside it", "At nine, every day of the week.", []any{line(1, "GET /internal/rank 200 13 ms"), line(1, "GET /internal/rank 200 7 ms"), sub(3, str(4, "At nine,")), line(2, "GET /internal/rank 503 90 ms"), sub(3, str(4, " every day")), sub(3, str(4, " of the week."))}},
		{"an error that ends it", "The ferry leaves at nine and", []any{sub(3, str(4, "The")), sub(3, str(4, " ferry leaves")), sub(3, str(4, " at nine and")), sub(4, num(1, 529), str(2, "The service is overloaded, please try again in a moment."))}},
		{"JSON", `{"first":"09:00","last":"22:00"}`, []any{sub(3, str(4, `{"first":`)), sub(3, str(4, `"09:00",`)), sub(3, str(4, `"last":`)), sub(3, str(4, `"22:00"}`))}},
		{"code alone", "ferries.push(next(9));\nferries.push(next(10));", []any{sub(3, str(4, "ferries.push(next(9));\nferries.push(next(10));"), str(5, "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"), str(6, "LOCAL"))}},
		{"the token that ends it", "The ferry leaves at nine.", []any{sub(3, str(4, "The")), sub(3, str(4, " ferry")), sub(3, str(4, " leaves")), sub(3, str(4, " at nine.")), sub(3, str(4, "<|im_end|>"))}},
		{"a short one beside what each frame has", "June", []any{slices.Concat(sub(5, str(7, "June")), str(12, "1"), str(13, "ensemble")), slices.Concat(num(4, 1), str(12, "1"), str(13, "ensemble"))}},
		{"a list told again", "The ferry leaves at nine.", []any{
			sub(1, num(1, 1), str(2, "When does the ferry leave on weekdays?")),
			append(sub(1, num(1, 1), str(2, "When does the ferry leave on weekdays?")), sub(1, num(1, 2), str(2, "The ferry leaves at nine."))...),
		}},
	} {
		tr := Extract(raw(append([]any{ask, "--"}, c.down...)...), Options{})
		if strings.TrimSpace(tr.Answer) != c.want {
			t.Errorf("%s: answer %q, want %q\n%s", c.name, tr.Answer, c.want, dump(tr))
		}
	}
}

// TestArgumentsInPieces: JSON that the client answers is a call's, though its name
// and identifier come behind it.
func TestArgumentsInPieces(t *testing.T) {
	ex := raw(request("What does Backoff do?"), "--", agentThought("The file has it."), agentThought(" I read it first."),
		sub(1, sub(7, str(3, `{"path":`))), sub(1, sub(7, str(3, `"retry/backoff.go",`))), sub(1, sub(7, str(3, `"id":"`+callID+`"}`))),
		sub(1, sub(2, str(1, callID), sub(2, str(1, "retry/backoff.go")))))
	ex.Frames = append(ex.Frames, raw(sub(2, str(1, callID), sub(7, str(1, "// Package retry decides when to try again.\npackage retry\n"))), "--", agentText("It says"), agentText(" how long"), agentText(" to wait.")).Frames...)
	tr := Extract(ex, Options{})
	if role := roleOf(tr, `{"path":"retry/backoff.go","id":"`+callID+`"}`); role != string(roleToolCall) || tr.Answer != "It says how long to wait." {
		t.Errorf("the arguments are %s, answer %q\n%s", role, tr.Answer, dump(tr))
	}
}

// TestNotAgain: what only looks as if it was sent again, or placed, stays.
func TestNotAgain(t *testing.T) {
	ask := request("Say it.")
	tick := func(n int, text string) []byte { return sub(1, num(2, n), str(5, text)) }
	for _, c := range []struct {
		want   string
		pieces []string
	}{
		{"a b c d e f g and so on it goes", []string{"a", " ", "b", " ", "c", " ", "d", " ", "e", " f g and so", " on it", " goes"}},
		{"No, no, no, no, no, no, that is not it at all.", []string{"No, no,", " no, no,", " no, no,", " that is", " not it", " at all."}},
		{"Row, row, row your boat. Row, row, row your boat. Gently.", []string{"Row, row, row", " your boat.", " Row, row, row", " your boat.", " Gently."}},
	} {
		bodies := []any{ask, "--"}
		for i, p := range c.pieces {
			bodies = append(bodies, tick(i, p))
			if i%3 == 2 {
				bodies = append(bodies, sub(8, num(1, i)))
			}
		}
		if tr := Extract(raw(bodies...), Options{}); tr.Answer != c.want {
			t.Errorf("answer %q, want %q\n%s", tr.Answer, c.want, dump(tr))
		}
	}
}
