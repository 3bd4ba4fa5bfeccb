package transcript

import "testing"

// Numbers and identifiers next to the pieces of a text without names.
func TestNumbersBesidePieces(t *testing.T) {
	const id = "bot-0b5b9b3e-6a0f-4d0e-9f5e-3f1d2c4b5a69"
	question := str(1, "Why does the build take so long today?")
	chinese := []string{"我", "已经修", "改了这", "个", "函数。做面", "包", "最需要", "的", "是时间。"}
	for _, c := range []struct {
		name         string
		down         []any
		answer, uses string
	}{
		{"the number of tokens of each piece", func() (out []any) {
			for _, p := range chinese {
				out = append(out, append(append(str(1, id), str(3, p)...), num(4, (len(p)+5)/6)...))
			}
			return out
		}(), "我已经修改了这个函数。做面包最需要的是时间。", "null"},
		{"a flag next to all snapshots but the last", []any{
			sub(1, str(1, id), str(5, "The clock"), num(6, 1)), sub(1, str(1, id), str(5, "The clock is read"), num(6, 1)), sub(1, str(1, id), str(5, "The clock is read twice."), num(6, 1)),
			sub(1, str(1, id), str(5, "The clock is read twice. Read it once.")),
		}, "The clock is read twice. Read it once.", "null"},
		{"an identifier with numbers at the end", []any{
			append(str(1, id), append(str(3, "The clock is read"), num(4, 4)...)...), append(str(1, id), append(str(3, " twice, so the test"), num(4, 5)...)...), append(str(1, id), append(str(3, " fails now and then."), num(4, 5)...)...),
			append(str(1, id), sub(7, num(1, 226), num(2, 40), num(3, 14), num(5, 0), num(6, 3), str(7, id))...),
		}, "The clock is read twice, so the test fails now and then.", `{"input":40,"output":14,"cached":0,"path":"7","frame":3,"named":false}`},
	} {
		got := Extract(raw(append([]any{question, "--"}, c.down...)...), Options{})
		if got.Answer != c.answer || got.Thinking != "" || string(compactJSON(got.Usage)) != c.uses {
			t.Errorf("%s: answer %q, thinking %q, usage %s", c.name, got.Answer, got.Thinking, compactJSON(got.Usage))
		}
	}
}
