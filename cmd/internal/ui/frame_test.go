package ui_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/cmd/internal/cli"
	"unwire/cmd/internal/query"
)

// run runs a command of unwire.
func run(t *testing.T, args ...string) string {
	t.Helper()
	return runStatus(t, 0, args...)
}

// runStatus runs a command of unwire that ends with a status.
func runStatus(t *testing.T, status int, args ...string) string {
	t.Helper()
	var out, said bytes.Buffer
	if code := cli.Run(args, strings.NewReader(""), &out, &said); code != status {
		t.Fatalf("unwire %q: status %d\n%s", args, code, said.String())
	}
	return out.String()
}

// TestExchange: the timeline and the frames as one line each, by keys and clicks.
func TestExchange(t *testing.T) {
	p := open(t, serve(t, sample(t)), 1280, 800)
	p.see("#list .row", "AgentService/Run")
	p.keys(kb.ArrowDown)
	p.see("#list .row.selected", "Run")
	p.keys(kb.Enter)

	// Deltas are folded, a wait and the end of the stream are visible.
	p.see("#frames .row", "Backoff waits longer after each failure")
	p.see("#frames .row .tag", "×16")
	p.see("#frames .row", "waited 2.30 s")
	p.see("#frames .row.end", "end of stream")
	p.see("footer", "19 frames in 4 lines")
	p.await("document.querySelectorAll('.lanes rect.up').length === 1 && document.querySelectorAll('.lanes rect.down').length === 18")
	// To scale in time: the first delta is 100 ms, the last one 700 ms after the request.
	p.await("(() => { const x = [...document.querySelectorAll('.lanes rect')].map(r => r.x.baseVal.value); const w = x[x.length - 1] - x[0]; return Math.abs((x[1] - x[0]) / w - 0.1 / 3.1) < 0.01 && Math.abs((x[16] - x[0]) / w - 0.7 / 3.1) < 0.01 })()")
	p.accessible()
	p.shot("exchange")

	// Unfolded, each frame has a line.
	p.keys("u")
	p.await("document.querySelectorAll('#frames .row').length === 19")
	p.keys("u")
	p.await("document.querySelectorAll('#frames .row').length === 4")

	// A click in the timeline chooses a frame.
	p.click(".lanes rect.down.end")
	p.await("location.hash.includes('f=down%2F17')")
	p.see(".framehead", "end of stream")

	// Headers, without the secret.
	p.clickText("button", "Headers")
	p.see(".headers", "application/connect+proto")
	if text := p.text(".headers"); strings.Contains(text, "secret-token") || !strings.Contains(text, "authorization") {
		t.Errorf("headers: %s", text)
	}
	p.accessible()

	// Another exchange: its error is distinct from the end of a stream.
	p.keys(kb.Escape)
	p.see("#list .row.selected", "Run")
	p.keys(kb.ArrowDown)
	p.await("location.hash.includes('x=2')")
	p.keys(kb.Enter)
	p.see("#frames .row.failed", "resource_exhausted")
	p.see(".head .alarm", "rate limit reached")
	p.dark(true)
	p.accessible()
	p.shot("failed-dark")
	p.quiet()
}

// TestFrame: tree, bytes and text lead to each other, layers are open in place, and a type is
// chosen.
func TestFrame(t *testing.T) {
	file := sample(t)
	p := open(t, serve(t, file), 1280, 800)
	p.see("#list .row", "AgentService/Run")
	p.click("#list-0")
	p.keys(kb.Enter)
	p.see("#frames .row.selected", "composer-1")
	p.keys(kb.Enter)
	p.await("document.activeElement.id === 'tree'")

	// From the tree to the bytes.
	p.keys(kb.ArrowDown, kb.ArrowDown)
	p.see("footer.chosen", "1.1")
	p.see("#bytes .hex .lit", "57 68 61 74") // What
	for class, want := range map[string]string{"key": "0a", "length": "15"} {
		p.see("#bytes .hex .lit."+class, want)
	}
	p.shot("frame")
	p.accessible()

	// From the bytes to the tree: the JSON in field 2 begins in the third line.
	p.clickText("#bytes .asc span", `{"model`)
	p.see("footer.chosen code", "2")
	p.await("document.querySelector('#tree .row.selected').innerText.includes('composer-1')")

	// Layers are open in place: JSON in a string, and a message in gzip.
	p.see("#tree .row .tag.layer", "gzip → message")
	p.see("#tree .row", "read_file")
	p.click("#tree-1")
	p.keys(kb.End, kb.ArrowUp)
	p.see("footer.chosen code", "7!gzip.1")
	p.see("#bytes .asc .lit", "inside gzip")
	p.see(".tabs", "7 (gzip)")

	// Text.
	p.keys("x")
	p.see("#bytes.scroll .lit", "inside gzip")
	p.accessible()
	p.shot("text")
	p.keys("x")

	// Folding.
	p.click("#tree-0")
	p.keys(kb.ArrowLeft)
	p.await("![...document.querySelectorAll('#tree .row')].some(r => r.innerText.includes('What does'))")
	p.keys(kb.ArrowRight)
	p.see("#tree .row", "What does")

	// Why a field is read as it is, and to read it otherwise.
	p.clickText("#tree .row", "bool")
	p.see("footer.chosen code", "1.2")
	p.keys("r")
	p.see("dialog", "What would decide")
	p.await("document.querySelectorAll('dialog meter').length > 1")
	p.accessible()
	p.shot("reading")
	p.clickText("dialog button", "Read as uint")
	p.see("#tree .row", "chosen")
	c, err := query.Open(file, store.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	chosen, err := c.Readings(t.Context(), "")
	if err != nil || len(chosen) != 1 || chosen[0].Path != "1.2" || chosen[0].Dir != captures.Up {
		t.Errorf("the capture remembers %v (%v)", chosen, err)
	}
	if text := run(t, "show", file, "1"); !strings.Contains(text, "uint") {
		t.Errorf("show does not use the type:\n%s", text)
	}
	p.dark(true)
	p.accessible()
	p.shot("frame-dark")
	p.quiet()

	// The URL has it all.
	again := open(t, read[string](p, "location.href"), 800, 900)
	again.see("footer.chosen code", "1.2")
	again.accessible()
	again.shot("frame-800")
	again.quiet()
}

// TestCopyAs: command lines of other tools, and files, are what the commands print.
func TestCopyAs(t *testing.T) {
	file := sample(t)
	p := open(t, serve(t, file), 1280, 800)
	p.see("#list .row", "AgentService/Run")
	p.click("#list-3")
	p.await("location.hash.includes('x=4')")
	p.keys("c")
	p.see("dialog .copytext", "unwire show ")
	p.accessible()
	p.clickText("dialog [role=tab]", "curl")
	p.see("dialog .copytext", "curl ")
	want := strings.TrimSpace(run(t, "show", "--copy", "curl", file, "4"))
	p.await("document.querySelector('dialog .copytext').textContent.includes('shop.example.org')")
	if got := read[string](p, "document.querySelector('dialog .copytext').textContent"); got != want {
		t.Errorf("copied\n%s\nshow prints\n%s", got, want)
	}
	p.clickText("dialog [role=tab]", "Go")
	want = strings.TrimSpace(run(t, "show", "--copy", "go", file, "4"))
	p.await("document.querySelector('dialog .copytext').textContent.includes('package main')")
	if got := read[string](p, "document.querySelector('dialog .copytext').textContent"); got != want {
		t.Errorf("copied\n%s\nshow prints\n%s", got, want)
	}
	p.accessible()
	p.shot("copy")
	p.quiet()
}

// TestFrameIsThatOfShow: the JSON of a frame is that of 'unwire show --json'.
func TestFrameIsThatOfShow(t *testing.T) {
	t.Parallel()
	file := sample(t)
	base := serve(t, file)
	for _, at := range []string{"1/up/0", "1/down/0", "1/down/17", "2/down/0", "5/down/0"} {
		id, frame, _ := strings.Cut(at, "/")
		_, body := ask(t, base, "GET", "/api/download?what=json&x="+id+"&f="+frame, nil)
		if want := run(t, "show", "--proto", "none", "--json", file+"#"+at); body != want {
			t.Errorf("%s:\n%s\nshow prints\n%s", at, body, want)
		}
	}
}
