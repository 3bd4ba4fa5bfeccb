package tagged

import (
	"fmt"
	"strings"
	"testing"
)

func TestCut(t *testing.T) {
	mentioned := func(name string) bool { return name == "read_file" }
	for _, c := range []struct{ text, rest, calls string }{
		{"Let me look.\n<tool_call>\n{\"name\": \"get\", \"arguments\": {\"x\": 1}}\n</tool_call>", "Let me look.", `get {"x": 1};`},
		{"<tool_call>{\"name\": \"a1\", \"arguments\": {}}</tool_call>\n<tool_call>{\"name\": \"b1\", \"parameters\": {\"y\":[2]}}</tool_call>", "", `a1 {};b1 {"y":[2]};`},
		{"So:\n<tool_call>\n<function=get>\n<parameter=city>\nOslo\n</parameter>\n<parameter=n>\n3\n</parameter>\n</function>\n</tool_call>", "So:", `get {"city":"Oslo","n":3};`},
		{"<function_calls>\n<invoke name=\"get\">\n<parameter name=\"city\">Oslo</parameter>\n</invoke>\n<invoke name=\"put\">\n</invoke>\n</function_calls> Done.", "Done.", `get {"city":"Oslo"};put {};`},
		{"<tool_call>get\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n</tool_call>", "", `get {"city":"Oslo"};`},
		{"[TOOL_CALLS] [{\"name\": \"get\", \"arguments\": {\"x\": 1}}]", "", `get {"x": 1};`},
		{"[TOOL_CALLS]get[ARGS]{\"x\": 1}", "", `get {"x": 1};`},
		{"<tool_call>get_json\n```json\n{\"x\": 1}\n```</tool_call>", "", `get_json {"x": 1};`},
		{"<|python_tag|>{\"name\": \"get\", \"parameters\": {\"x\": \"1\"}}", "", `get {"x": "1"};`},
		{"<function=get>{\"x\": 1}</function>", "", `get {"x": 1};`},
		{"<|tool_calls_section_begin|><|tool_call_begin|>functions.get:0<|tool_call_argument_begin|>{\"x\": 1}<|tool_call_end|><|tool_calls_section_end|>", "", `get {"x": 1};`},
		{"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get\n```json\n{\"x\": 1}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>", "", `get {"x": 1};`},
		{"Reading.\n<read_file>\n<path>go.mod</path>\n</read_file>", "Reading.", `read_file {"path":"go.mod"};`},
		{"<write_file>\n<path>go.mod</path>\n</write_file>", "<write_file>\n<path>go.mod</path>\n</write_file>", ""},
		{"Write <tool_call> before it, and </tool_call> after it.", "Write <tool_call> before it, and </tool_call> after it.", ""},
		{"```\n<tool_call>{\"name\": \"get\", \"arguments\": {}}</tool_call>\n```", "```\n<tool_call>{\"name\": \"get\", \"arguments\": {}}</tool_call>\n```", ""},
		{"x[i] < y[j]", "x[i] < y[j]", ""},
	} {
		rest, calls := Cut(c.text, mentioned)
		got := ""
		for _, call := range calls {
			got += fmt.Sprintf("%s %s;", call.Name, call.Arguments)
		}
		if rest != c.rest || got != c.calls {
			t.Errorf("%q: %q and %s, want %q and %s", c.text, rest, got, c.rest, c.calls)
		}
	}
}

// Texts of markers that do not end take no longer than their size allows.
func TestHostile(t *testing.T) {
	for _, text := range []string{strings.Repeat("<tool_call>", 1<<17), strings.Repeat("<tool_call>{", 1<<17), strings.Repeat("<function=a1>", 1<<17), strings.Repeat("<read_file><a>", 1<<17)} {
		Cut(text, func(name string) bool { return name == "read_file" })
	}
}

func TestThinking(t *testing.T) {
	for _, c := range []struct{ text, thoughts, answer string }{
		{"<think>Why?</think>\n\nBecause.", "Why?", "Because."},
		{"<reasoning>Why?</reasoning>Because.", "Why?", "Because."},
		{"Why?\n</think>\n\nBecause.", "Why?", "Because."},
		{"<think>Why?", "", "<think>Why?"},
		{"The tag </think> ends it.", "", "The tag </think> ends it."},
	} {
		if thoughts, answer := Thinking(c.text); thoughts != c.thoughts || answer != c.answer {
			t.Errorf("%q: %q and %q, want %q and %q", c.text, thoughts, answer, c.thoughts, c.answer)
		}
	}
}

func FuzzCut(f *testing.F) {
	f.Add("a <tool_call>{\"name\": \"get\", \"arguments\": {}}</tool_call> b")
	f.Add("<function=get><parameter=a>\n1\n</parameter></function>")
	f.Fuzz(func(t *testing.T, text string) {
		rest, calls := Cut(text, func(string) bool { return true })
		if calls == nil && rest != text {
			t.Errorf("%q without calls became %q", text, rest)
		}
		if len(rest) > len(text) {
			t.Errorf("%q became longer: %q", text, rest)
		}
	})
}

// TestNestedFunctions: an object in OpenAI's form is a call, and one with further objects inside is none, however many.
func TestNestedFunctions(t *testing.T) {
	call := `{"name":"grep","arguments":{"a":1}}`
	for depth, want := range []int{1, 1, 0, 0} {
		text := "<tool_call>" + strings.Repeat(`{"function":`, depth) + call + strings.Repeat("}", depth) + "</tool_call>"
		if _, calls := Cut(text, func(string) bool { return false }); len(calls) != want {
			t.Errorf("depth %d: %+v", depth, calls)
		}
	}
}
