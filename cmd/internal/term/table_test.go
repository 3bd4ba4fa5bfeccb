package term

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// calls is a table like the listing of exchanges.
func calls() Table {
	return Table{
		Columns: []Column{
			{Name: "ID", Right: true},
			{Name: "CALL", Shorten: Name, Min: 12},
			{Name: "CODEC", Drop: 2},
			{Name: "CODE"},
			{Name: "BYTES", On: Drawn, Right: true},
			{Name: "SENT", On: Plain},
			{Name: "TIME", Drop: 1},
			{Name: "EMPTY"},
		},
		Rows: [][]string{
			{"1", "agent.v1.AgentService/Run", "proto", "ok", "5056", "40", "422.5 ms", ""},
			{"12", "shop.v1.inventory.StockService/ListWarehouses", "json", "resource_exhausted", "7", "3", "1.1 ms", ""},
			{"13", "GET https://例え.jp/検索?q=🙂🙂\x1b[2J", "", "not_found", "1", "1", "20.0 ms", ""},
		},
	}
}

// drawn is a table on a terminal of a width.
func drawn(t *testing.T, table Table, width int) []string {
	t.Helper()
	var b bytes.Buffer
	if err := (&Output{Writer: &b, TTY: true, Width: width}).Table(table); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}

func TestTableIsTSVOffATerminal(t *testing.T) {
	t.Setenv("COLUMNS", "20")
	var b bytes.Buffer
	if err := New(&b, "auto").Table(calls()); err != nil {
		t.Fatal(err)
	}
	want := "ID\tCALL\tCODEC\tCODE\tSENT\tTIME\tEMPTY\n" +
		"1\tagent.v1.AgentService/Run\tproto\tok\t40\t422.5 ms\t\n" +
		"12\tshop.v1.inventory.StockService/ListWarehouses\tjson\tresource_exhausted\t3\t1.1 ms\t\n" +
		"13\tGET https://例え.jp/検索?q=🙂🙂\\x1b[2J\t\tnot_found\t1\t20.0 ms\t\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestTableFitsTheTerminal(t *testing.T) {
	for width, want := range map[int]string{
		120: `
ID  CALL                                           CODEC  CODE                BYTES  TIME
 1  agent.v1.AgentService/Run                      proto  ok                   5056  422.5 ms
12  shop.v1.inventory.StockService/ListWarehouses  json   resource_exhausted      7  1.1 ms
13  GET https://例え.jp/検索?q=🙂🙂\x1b[2J                not_found               1  20.0 ms`,
		80: `
ID  CALL                          CODEC  CODE                BYTES  TIME
 1  agent.v1.AgentService/Run     proto  ok                   5056  422.5 ms
12  …StockService/ListWarehouses  json   resource_exhausted      7  1.1 ms
13  GET https://例え.jp/検索?…           not_found               1  20.0 ms`,
		65: `
ID  CALL                          CODE                BYTES
 1  agent.v1.AgentService/Run     ok                   5056
12  …StockService/ListWarehouses  resource_exhausted      7
13  GET https://例え.jp/検索?…    not_found               1
(columns hidden at this width: CODEC, TIME)`,
	} {
		if got := "\n" + strings.Join(drawn(t, calls(), width), "\n"); got != want {
			t.Errorf("%d columns:%s\nwant:%s", width, got, want)
		}
	}
}

func TestUnimportantColumnsAreDroppedFirst(t *testing.T) {
	for width, want := range map[int]string{
		74: "(column hidden at this width: CODEC)",
		65: "(columns hidden at this width: CODEC, TIME)",
	} {
		if lines := drawn(t, calls(), width); lines[len(lines)-1] != want {
			t.Errorf("%d columns: %s", width, strings.Join(lines, "\n"))
		}
	}
}

func TestDetailsAreBelowTheTable(t *testing.T) {
	table := Table{
		Columns: []Column{{Name: "FIELD"}, {Name: "VERDICT"}, {Name: "WHY", Shorten: End, Min: 10}, {Name: "FROM", Drop: 1}},
		Rows: [][]string{
			{"a.one", "confirmed", "the server reads it as a message of this very type", "a definition"},
			{"a.two", "contradicted", "the server reads it as text, which is something else", "a guess that was made earlier"},
		},
	}
	table.Detail = func(i int) bool { return i == 1 }
	want := `
FIELD  VERDICT       WHY
a.one  confirmed     the server reads…
a.two  contradicted  the server reads…

a.two
  WHY: the server reads it as text,
    which is something else
  FROM: a guess that was made earlier
(column hidden at this width: FROM)`
	if got := "\n" + strings.Join(drawn(t, table, 38), "\n"); got != want {
		t.Errorf("got%s\nwant%s", got, want)
	}
}

func TestATableWithoutHeader(t *testing.T) {
	table := Table{
		Columns:  []Column{{Name: "NUMBER"}, {Name: "REFERENCE", Shorten: End, Min: 6}},
		Rows:     [][]string{{"1", "a text"}, {"2.4", "a longer text than fits"}},
		Indent:   "  ",
		NoHeader: true,
	}
	want := "  1    a text\n  2.4  a longer …"
	if got := strings.Join(drawn(t, table, 17), "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Whatever is in a table, no line is wider than the terminal, each row is one line, and
// what is not shortened is whole.
func TestTablesOfAnythingFit(t *testing.T) {
	cell := rapid.OneOf(rapid.StringMatching(`[a-z]{0,9}([./ ][A-Za-z]{1,20}){0,4}`), rapid.StringMatching(`(検|a|🙂| |\x1b|é){0,40}`), rapid.String())
	rapid.Check(t, func(r *rapid.T) {
		columns := rapid.IntRange(1, 8).Draw(r, "columns")
		table := Table{}
		for j := range columns {
			table.Columns = append(table.Columns, Column{
				Name: fmt.Sprintf("COLUMN%d", j), Drop: rapid.IntRange(0, 3).Draw(r, "drop"),
				Shorten: Shortening(rapid.IntRange(0, 4).Draw(r, "shorten")), Min: rapid.IntRange(0, 20).Draw(r, "min"), Right: rapid.Bool().Draw(r, "right"),
			})
		}
		for range rapid.IntRange(1, 5).Draw(r, "rows") {
			table.Rows = append(table.Rows, rapid.SliceOfN(cell, columns, columns).Draw(r, "row"))
		}
		width := rapid.IntRange(24, 200).Draw(r, "width")
		var b bytes.Buffer
		if err := (&Output{Writer: &b, TTY: true, Width: width}).Table(table); err != nil {
			r.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
		if n := len(table.Rows) + 1; len(lines) != n && len(lines) != n+1 {
			r.Errorf("%d rows are %d lines:\n%s", n-1, len(lines), b.String())
		}
		for _, line := range lines {
			if n := Cells(line); n > width {
				r.Errorf("%d cells on a terminal of %d: %q", n, width, line)
			}
		}
	})
}

func TestShorten(t *testing.T) {
	for _, c := range []struct {
		how   Shortening
		width int
		in    string
		want  string
	}{
		{Middle, 11, "https://api.example.com/v1/items", "http…/items"},
		{Middle, 9, "漢字かな交じり文", "漢…じり文"},
		{Start, 10, "a/folder/of/file.proto", "…ile.proto"},
		{Start, 14, "a/folder/of/file.proto", "…/file.proto"},
		{End, 11, "the server reads it", "the server…"},
		{End, 14, "the server reads it", "the server …"},
		{End, 9, "internationalisation", "internat…"},
		{Name, 30, "agent.v1.AgentService/Run", "agent.v1.AgentService/Run"},
		{Name, 19, "agent.v1.AgentService/Run", "…AgentService/Run"},
		{Name, 16, "agent.v1.AgentService/Run", "AgentService/Run"},
		{Name, 12, "agent.v1.AgentService/Run", "…Run"},
		{Name, 19, "shop.v1.PlaceOrderRequest", "…PlaceOrderRequest"},
		{Name, 12, "POST http://127.0.0.1:8080/x", "POST …/x"},
		{Name, 26, "GET https://api.example/v1/items?page=2", "GET api.example/v1/items?…"},
		{Name, 18, "GET https://api.example/v1/items?page=2", "GET …/v1/items?…"},
		{Name, 8, "GET https://api.example/v1/items?page=2", "GE…ems?…"},
		{whole, 5, "uncuttable", "uncu…"},
	} {
		got := Shorten(c.in, c.width, c.how)
		if got != c.want {
			t.Errorf("Shorten(%q, %d, %d) = %q, want %q", c.in, c.width, c.how, got, c.want)
		}
		if Cells(got) > c.width {
			t.Errorf("%q is wider than %d", got, c.width)
		}
	}
}

func TestParagraphBreaksAtWords(t *testing.T) {
	var b strings.Builder
	(&Output{Width: 24}).Paragraph(&b, "  ", "\x1b[1mWHY:\x1b[0m ", "the server reads it as 漢字かな and/or/a/very/long/path/of/a/file.proto\x07")
	want := `  ` + "\x1b[1mWHY:\x1b[0m" + ` the server reads
    it as 漢字かな
    and/or/a/very/long/p
    ath/of/a/file.proto\
    x07
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func BenchmarkTable(b *testing.B) {
	t := calls()
	for len(t.Rows) < 1000 {
		t.Rows = append(t.Rows, slices.Clone(t.Rows)...)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := (&Output{Writer: new(bytes.Buffer), TTY: true, Width: 80}).Table(t); err != nil {
			b.Fatal(err)
		}
	}
}

func TestSentencesBreakAtWordsOnATerminal(t *testing.T) {
	text := "unwire: \x1b[31merror:\x1b[0m the server does not name the type\n  a second, indented line that is long\n"
	var plain, tty bytes.Buffer
	(&Output{Writer: &plain, Width: 30}).Sayf("%s", text)
	if plain.String() != text {
		t.Errorf("off a terminal: %q", plain.String())
	}
	(&Output{Writer: &tty, TTY: true, Width: 30}).Sayf("%s", text)
	want := "unwire: \x1b[31merror:\x1b[0m the server does\n  not name the type\n  a second, indented line that\n    is long\n"
	if tty.String() != want {
		t.Errorf("got\n%swant\n%s", tty.String(), want)
	}
}
