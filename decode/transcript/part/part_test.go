package part

import (
	"fmt"
	"testing"

	"unwire/captures"
	"unwire/decode/transcript/keyed"
)

func TestConcat(t *testing.T) {
	for _, c := range []struct {
		texts []string
		delta bool
		want  string
	}{
		{[]string{"ha", "ha", "ha"}, false, "hahaha"},
		{[]string{"A", "A b", "A b c"}, false, "A b c"},
		{[]string{"It is long enough, ", "to be repeated.", "It is long enough, to be repeated."}, true, "It is long enough, to be repeated."},
		{[]string{"no", " no", " no"}, true, "no no no"},
		{[]string{"The same whole message.", "The same whole message."}, false, "The same whole message.The same whole message."},
		{[]string{"The same whole message, again.", "The same whole message, again."}, false, "The same whole message, again."},
	} {
		if got := concat(c.texts, c.delta, false); got != c.want {
			t.Errorf("%q: %q, want %q", c.texts, got, c.want)
		}
	}
}

func down(event int, p keyed.Piece) keyed.Piece {
	p.Dir, p.Frame, p.Seq, p.Event = captures.Down, event, event, event
	if p.Path == "" {
		p.Path = "delta"
	}
	return p
}

// Parallel calls stay apart, and what an event repeats counts once.
func TestCalls(t *testing.T) {
	index := func(n string) []keyed.Key { return []keyed.Key{{Name: "index", Value: n, Index: true}} }
	call := func(event int, key, id, name, args string) keyed.Piece {
		return down(event, keyed.Piece{Channel: keyed.Call, Keys: index(key), ID: id, Name: name, Text: args})
	}
	done := down(9, keyed.Piece{Channel: keyed.Call, Path: "item", ID: "a", Name: "get", Text: `{"x":1}`, Object: true})
	p := Join(&keyed.Pieces{List: []keyed.Piece{
		call(1, "0", "a", "get", ""), call(2, "1", "b", "get", ""), call(3, "0", "", "", `{"x"`), call(4, "1", "", "", `{"x":`), call(5, "0", "", "", `:1}`), call(6, "1", "", "", `2}`), done,
		{Dir: captures.Up, Frame: 10, Channel: keyed.Result, ID: "b", Text: "two"},
		{Dir: captures.Up, Frame: 10, Channel: keyed.Result, ID: "a", Text: "one"},
	}})
	got := ""
	for _, c := range p.Calls {
		got += fmt.Sprintf("%s %s %s %s %v;", c.ID, c.Name, c.Arguments, c.Result.Text, c.Result.ByID)
	}
	if want := `a get {"x":1} one true;b get {"x":2} two true;`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestTexts(t *testing.T) {
	index := func(n string) []keyed.Key { return []keyed.Key{{Name: "index", Value: n, Index: true}} }
	text := func(event int, path, s string, delta bool) keyed.Piece {
		return down(event, keyed.Piece{Path: path, Text: s, Delta: delta, Tier: 2})
	}
	for _, c := range []struct {
		name   string
		pieces []keyed.Piece
		want   string
	}{
		{"parts, then the whole", []keyed.Piece{text(1, "delta", "Hello", true), text(2, "delta", " you", true), text(3, "text", "Hello you", false)}, "Hello you"},
		{"snapshots next to parts", []keyed.Piece{text(1, "delta", "42", true), text(1, "message", "42", false), text(2, "message", "42", false)}, "42"},
		{"snapshots of a state and of the answer", []keyed.Piece{text(1, "text", "Searching", false), text(2, "text", "On", false), text(3, "text", "One of", false), text(4, "text", "One of them", false), text(5, "text", "One of them.", false)}, "SearchingOne of them."},
		{"a greeting", []keyed.Piece{text(1, "text", "Hello!", false), down(2, keyed.Piece{Path: "text", Text: "How many?", Speaker: keyed.User, Tier: 3}), text(3, "text", "Two.", false)}, "Two."},
		{"a replaced text", []keyed.Piece{text(1, "text", "Searching", true), down(2, keyed.Piece{Path: "text", Text: "Tw", Replaces: true, Tier: 2}), text(3, "text", "o.", true)}, "Two."},
		{"the end repeats the text", []keyed.Piece{text(1, "text", "42", false), down(2, keyed.Piece{Path: "text", Text: "42", Final: true, Tier: 2})}, "42"},
		{"two blocks", []keyed.Piece{text(1, "delta", "One.", true), text(2, "other", "Two.", true)}, "One.Two."},
		{"first words in the announcement", []keyed.Piece{
			down(1, keyed.Piece{Path: "part.content", Text: "Hel", Keys: index("0"), Tier: 1}), down(2, keyed.Piece{Text: "lo", Keys: index("0"), Delta: true, Tier: 2}),
		}, "Hello"},
		{"first words that a start has", []keyed.Piece{
			down(1, keyed.Piece{Path: "content", Type: "/text_start", Text: "Hel", Tier: 1}), down(2, keyed.Piece{Text: "lo", Type: "/text_delta", Delta: true, Tier: 2}),
		}, "Hello"},
		{"an announcement that the parts repeat", []keyed.Piece{
			down(1, keyed.Piece{Path: "part.content", Text: "One is not enough for two.", Keys: index("0"), Tier: 2}), down(2, keyed.Piece{Text: "One is not enough ", Keys: index("0"), Delta: true, Tier: 2}),
			down(3, keyed.Piece{Text: "for two. Or is it?", Keys: index("0"), Delta: true, Tier: 2}),
		}, "One is not enough for two. Or is it?"},
		{"the first snapshot of another type", []keyed.Piece{
			down(1, keyed.Piece{Text: "On", Type: "/task.added", Tier: 2}), down(2, keyed.Piece{Text: "One of", Type: "/task.updated", Tier: 2}), down(3, keyed.Piece{Text: "One of them", Type: "/task.updated", Tier: 2}),
		}, "One of them"},
		{"a whole text that is not declared a part", []keyed.Piece{text(1, "text", "so", true), text(2, "text", "so", false)}, "so"},
		{"the second of two choices", []keyed.Piece{
			down(1, keyed.Piece{Text: "A", Choice: "0", Tier: 2}), down(2, keyed.Piece{Text: "B", Choice: "1", Tier: 2}), down(3, keyed.Piece{Text: "A", Choice: "0", Tier: 2}),
		}, "AA"},
	} {
		if got, _ := Join(&keyed.Pieces{List: c.pieces}).Answer(); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// Reports of a call without an identifier belong to the call of that name, and pieces of arguments with names of their own
// to the first piece.
func TestReportsOfCalls(t *testing.T) {
	call := func(event int, typ, name, args string) keyed.Piece {
		return down(event, keyed.Piece{Channel: keyed.Call, Path: "call", Type: typ, Name: name, Text: args, Object: args != ""})
	}
	p := Join(&keyed.Pieces{List: []keyed.Piece{
		call(1, "/start", "get", ""), call(2, "/arguments", "get", `{"x":1}`), call(3, "/success", "get", `{"x":1}`),
		call(4, "/start", "get", ""), call(5, "/arguments", "get", `{"x":2}`), call(6, "/success", "get", `{"x":2}`),
		down(7, keyed.Piece{Channel: keyed.Call, Path: "function.arguments", ID: "a", Name: "put", Text: `{"y"`}),
		down(8, keyed.Piece{Channel: keyed.Call, Path: "arguments_part", Text: `:3}`}),
	}})
	got := ""
	for _, c := range p.Calls {
		got += c.Name + " " + c.Arguments + ";"
	}
	if want := `get {"x":1};get {"x":2};put {"y":3};`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// Content that is not JSON is not the arguments of a call.
func TestGuessedArguments(t *testing.T) {
	for text, want := range map[string]string{`{"x":1}`: `{"x":1}`, "Reading the file": ""} {
		p := Join(&keyed.Pieces{List: []keyed.Piece{down(1, keyed.Piece{Channel: keyed.Call, ID: "a", Name: "get", Text: text, Guessed: true})}})
		if len(p.Calls) != 1 || p.Calls[0].Arguments != want {
			t.Errorf("%s: %+v", text, p.Calls)
		}
	}
}
