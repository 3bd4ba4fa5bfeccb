package exchangeline

import (
	"strings"
	"testing"
	"time"

	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/term"
)

func sample(url, code string) *contract.Exchange {
	return &contract.Exchange{
		ID: 12, Method: "POST", URL: url, Service: "shop.v1.Cart", RPC: "AddItem", Code: code, Complete: true,
		Started:   time.Date(2026, 11, 22, 10, 11, 12, 0, time.Local).Format(time.RFC3339Nano),
		BytesUp:   1200,
		Process:   &contract.Process{PID: 4, Name: "node"},
		BytesDown: 3_400_000, DurationMS: 120.4,
	}
}

func TestLine(t *testing.T) {
	t.Parallel()
	p := NewPrinter(&term.Output{})
	long := "https://api.shop.example.com/very/long/prefix/of/a/path/before/shop.v1.Cart/AddItemToTheCart"
	got := p.Line(sample(long, "not_found"), 100)
	want := "  12 10:11:12 node api.shop.example…p.v1.Cart/AddItemToTheCart not_found  1200 B↑  3.4 MB↓   120 ms"
	if got != want {
		t.Errorf("\n%s, want\n%s", got, want)
	}
	if !strings.Contains(p.Heading(), "sent (↑)") || p.Heading() != "" {
		t.Error("the columns are not explained once")
	}
	for _, width := range []int{40, 60, 80, 100, 120, 200} {
		for _, url := range []string{long, "https://h/x", "http://例え.example/パス/" + strings.Repeat("長い", 60), "https://h/\x1b[2J" + strings.Repeat("y", 300)} {
			line := p.Line(sample(url, "deadline_exceeded_by_far"), width)
			if n := term.Cells(line); n > width || strings.ContainsRune(line, '\x1b') {
				t.Errorf("%d columns of %d: %s", n, width, line)
			}
			if width >= 80 && strings.HasPrefix(url, "https://api") && !strings.Contains(line, "AddItemToTheCart") {
				t.Errorf("the method is lost: %s", line)
			}
		}
	}
	if line := p.Line(sample(long, "ok"), 0); !strings.Contains(line, "/very/long/prefix/of/a/path/before/") {
		t.Errorf("shortened without a width: %s", line)
	}
	red := NewPrinter(&term.Output{Color: true}).Line(sample("https://h/x", "internal"), 80)
	if !strings.Contains(red, "\x1b[31minternal\x1b[0m") {
		t.Errorf("not red: %q", red)
	}
}

func TestCallText(t *testing.T) {
	t.Parallel()
	for want, l := range map[string]*contract.Exchange{
		"GET h.test/a?b=1":      {Method: "GET", URL: "https://h.test/a?b=1"},
		"h.test/p.S/M":          {Method: "POST", URL: "https://h.test/p.S/M", Service: "p.S", RPC: "M"},
		"tcp 127.0.0.1:5":       {URL: "tcp://127.0.0.1:5", Transport: "tcp"},
		"CONNECT no url at all": {Method: "CONNECT", URL: "no url at all"},
		"websocket h.test/chat": {URL: "wss://h.test/chat", Transport: "websocket"},
	} {
		if got := callText(l); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
