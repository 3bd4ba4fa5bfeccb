package ui_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"
	"google.golang.org/protobuf/encoding/protowire"

	"unwire/captures"
)

// evil is text that would run as HTML, as a template, or as a URL, and control characters.
const evil = `<img src=x onerror="window.ran=1"><script>window.ran=1</script>"'` + "`${window.ran=1}`" + `javascript:window.ran=1` + "\x00\x1b[31m\u202egnp\u200b\u2028\x7f"

// hostile is a capture whose every string is evil.
func hostile(t *testing.T) string {
	t.Helper()
	s, finish := create(t, "hostile.uwc")
	if err := s.PutDefinition(t.Context(), captures.Definition{Kind: captures.ProtoFile, Name: "a.proto", Data: []byte("syntax = \"proto3\";\npackage a.v1;\n// " + strings.NewReplacer("\n", " ", "\x00", "", "\u2028", "").Replace(evil) + "\nmessage M { string x = 1; }\nservice A { rpc B(M) returns (M); }\n"), Active: true}); err != nil {
		t.Fatal(err)
	}
	headers := captures.Headers{{Name: "content-type", Value: "application/proto"}, {Name: evil, Value: evil}}
	for _, url := range []string{"https://h.example/a.v1.A/B", "https://h.example/" + evil, evil} {
		rec, err := s.Begin(captures.Exchange{Method: "POST", URL: url, HTTP: "2", Started: started, RequestHeaders: headers, Process: captures.Process{Name: evil}})
		if err != nil {
			t.Fatal(err)
		}
		rec.Chunk(captures.Up, append(str(1, evil), str(2, `{"role":"user","content":"<img src=x onerror=window.ran=1>","`+"<b>"+`":"x"}`)...))
		rec.Response(200, headers)
		rec.Chunk(captures.Down, append(str(1, evil), str(7, evil)...))
		rec.End(captures.Failed, evil)
		if err := s.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.PutNote(t.Context(), captures.Note{Place: captures.Place{Exchange: rec.ID(), Frame: captures.NoFrame}, Kind: captures.TextNote, Value: evil}); err != nil {
			t.Fatal(err)
		}
	}
	return finish()
}

// TestHostileText: nothing of a capture runs or becomes markup, in any view.
func TestHostileText(t *testing.T) {
	p := open(t, serve(t, hostile(t)), 1280, 900)
	inert := func(view string) {
		t.Helper()
		if read[bool](p, "window.ran !== undefined || Boolean(document.querySelector('#app img, #app script, #app b b, #app iframe'))") {
			t.Errorf("%s: captured text has run or become markup", view)
		}
		if text := p.text("body"); strings.ContainsAny(text, "\x00\x1b\u202e\u200b\u2028\x7f") {
			t.Errorf("%s: control characters are shown as they are: %q", view, text)
		}
	}
	p.see("#list .row", "onerror")
	inert("list")
	p.shot("hostile")
	for _, i := range []int{0, 1, 2} {
		p.click(fmt.Sprintf("#list-%d", i))
		p.await(fmt.Sprintf("location.hash.includes('x=%d')", i+1))
		p.keys(kb.Enter)
		p.see("#tree .row", "onerror")
		p.clickText("button", "Headers")
		p.see(".headers", "onerror")
		inert("exchange")
		p.click("#tree-0")
		p.see("footer.chosen", "1")
		p.keys("x")
		p.see("#bytes.scroll", "onerror")
		inert("text")
		p.keys("x", "r")
		p.see("dialog", "Evidence of")
		inert("reading")
		p.keys(kb.Escape)
		p.await("!document.querySelector('dialog')")
		p.keys("c")
		p.see("dialog .copytext", "unwire show")
		p.clickText("dialog [role=tab]", "curl")
		p.await("document.querySelector('dialog .copytext').textContent !== '…'")
		inert("copy")
		p.keys(kb.Escape)
		p.await("!document.querySelector('dialog')")
		p.keys("gt")
		p.see("h1", "Transcript")
		p.see("table", "onerror")
		inert("transcript")
		p.keys("gr")
		p.see("h1", "Send")
		p.see("#edittree .row", "onerror")
		inert("replay")
		p.keys("gs")
		p.see(".head", "unknown field")
		inert("schema")
		p.keys("gl")
		p.see("#list .row", "onerror")
	}
	for _, m := range p.said() {
		if strings.Contains(m, "Content Security Policy") || strings.Contains(m, "Trusted") {
			t.Errorf("the policy had to stop something: %s", m)
		}
	}
}

// longTasks counts the tasks of the page that took longer than 200 ms, from now on.
const longTasks = `(window.tasks = [], new PerformanceObserver(l => l.getEntries().forEach(e => tasks.push(e.duration))).observe({entryTypes: ['longtask']}), 0)`

// TestHugeFrames: a message of a million fields and a frame of 64 MB cause no long task.
func TestHugeFrames(t *testing.T) {
	s, finish := create(t, "huge.uwc")
	fields, size := 1_000_000, 60<<20
	if testing.Short() {
		fields, size = 100_000, 8<<20
	}
	var many bytes.Buffer
	for i := range fields {
		many.Write(num(protowire.Number(1+i%50), uint64(i)))
	}
	big := append(str(1, strings.Repeat("x", size)), num(2, 1)...)
	recordStream(t, s, "https://h.example/a.v1.A/Huge", captures.Complete, "",
		piece{captures.Up, 0, 0, many.Bytes()}, piece{captures.Down, time.Millisecond, 0, big})
	url := serve(t, finish())
	// Durations are of the wall clock: on a machine that does other things, too, the best of three counts.
	var long []float64
	for range 3 {
		if long = lookAtHugeFrames(t, url); len(long) == 0 {
			return
		}
	}
	t.Errorf("long tasks: %v ms", long)
}

// lookAtHugeFrames walks through two huge frames, and returns the durations of the page's tasks
// over 200 ms.
func lookAtHugeFrames(t *testing.T, url string) []float64 {
	t.Helper()
	p := open(t, url, 1280, 800)
	read[int](p, longTasks)
	p.see("#list .row", "A/Huge")
	p.click("#list-0")
	p.keys(kb.Enter)
	p.see("#frames .row", "1")
	p.see("#tree .row", "1")
	p.click("#tree-0")
	p.see("footer.chosen", "1")
	p.keys(kb.End)
	p.await("document.querySelectorAll('#tree .row').length > 5")
	p.keys(kb.PageUp, kb.PageUp, kb.ArrowUp)
	p.see("footer.chosen code", "[")
	p.click("#frames-1")
	p.see("#bytes .asc", "xxxx")
	p.see(".framehead", "MB")
	p.keys(kb.ArrowUp)
	t.Logf("tasks over 50 ms: %v", read[[]float64](p, "tasks"))
	return read[[]float64](p, "tasks.filter(d => d > 200)")
}
