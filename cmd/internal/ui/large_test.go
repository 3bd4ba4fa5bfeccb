package ui_test

import (
	"bytes"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/decode/envelope"
)

// long is whether tests use captures of the size that users may have, and strict limits of time.
var long = os.Getenv("UNWIRE_LONG") != ""

// recordLarge records a number of frames: half of them in one stream, the others in calls of
// two frames. The stream is the last exchange; it is returned before it ends.
func recordLarge(t testing.TB, s *store.Store, frames int) captures.Recording {
	t.Helper()
	media := captures.Headers{{Name: "content-type", Value: "application/proto"}}
	hosts := []string{"api.example.com", "shop.example.org", "cdn.example.net"}
	for i := range frames * 3 / 10 {
		rec, err := s.Begin(captures.Exchange{
			Method: "POST", URL: fmt.Sprintf("https://%s/shop.v1.Shop/Get%d", hosts[i%len(hosts)], i%40), HTTP: "2",
			Started: started.Add(time.Duration(i) * time.Millisecond), RequestHeaders: media, Source: "proxy",
		})
		if err != nil {
			t.Fatal(err)
		}
		rec.ChunkAt(captures.Up, 0, append(num(1, uint64(i)), str(2, "blue shoe")...))
		rec.Response(200, media)
		rec.ChunkAt(captures.Down, 5*time.Millisecond, msg(1, str(1, "shoe"), num(2, uint64(i))))
		rec.EndAt(time.Duration(6+i%50)*time.Millisecond, captures.Complete, "")
	}
	streamed := captures.Headers{{Name: "content-type", Value: "application/connect+proto"}}
	rec, err := s.Begin(captures.Exchange{Method: "POST", URL: "https://api.example.com/count.v1.Counter/Watch", HTTP: "2", Started: started, RequestHeaders: streamed, Source: "proxy"})
	if err != nil {
		t.Fatal(err)
	}
	rec.ChunkAt(captures.Up, 0, envelope.Append(nil, 0, num(2, uint64(frames))))
	rec.Response(200, streamed)
	for i := range frames*2/5 - 1 {
		rec.ChunkAt(captures.Down, time.Duration(i+1)*time.Millisecond, envelope.Append(nil, 0, str(1, fmt.Sprintf("word %d", i))))
	}
	return rec
}

// scriptTime returns the processor time that the page has spent in scripts, in milliseconds.
func (p *tab) scriptTime() float64 {
	p.t.Helper()
	r, err := chromedp.Call(p.ctx, performance.GetMetrics, cdp.Empty{})
	if err != nil {
		p.t.Fatal(err)
	}
	for _, m := range r.Metrics {
		if m.Name == "ScriptDuration" {
			return 1000 * m.Value
		}
	}
	p.t.Fatal("Chromium does not report ScriptDuration")
	return 0
}

// measure does steps and returns the mean processor time of scripts for one, in milliseconds.
func (p *tab) measure(what string, steps int, step func(i int)) float64 {
	p.t.Helper()
	before := p.scriptTime()
	for i := range steps {
		step(i)
		time.Sleep(20 * time.Millisecond) // as a person, who sees each step
	}
	time.Sleep(200 * time.Millisecond)
	mean := (p.scriptTime() - before) / float64(steps)
	p.t.Logf("%s: %.2f ms of script", what, mean)
	return mean
}

// wheel turns the mouse wheel over what a selector names.
func (p *tab) wheel(selector string, by float64) {
	p.t.Helper()
	at := read[[]float64](p, fmt.Sprintf("(r => [r.x + r.width / 2, r.y + r.height / 2])(document.querySelector(%q).getBoundingClientRect())", selector))
	// The bindings leave out zeros, but Chromium wants both deltas.
	_, err := chromedp.Call(p.ctx, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: input.DispatchMouseEventTypeMouseWheel, X: at[0], Y: at[1], DeltaX: 0.01, DeltaY: by})
	if err != nil {
		p.t.Fatal(err)
	}
}

// openMeasured opens the page in a new browser, which measures script time in processor time,
// notes when the list was shown, and collects tasks of more than 200 ms.
func openMeasured(t testing.TB, url string) *tab {
	t.Helper()
	p := open(t, "about:blank", 1280, 800)
	const watch = `new MutationObserver(() => { if (!window.listed && document.querySelector("#list .row b")) window.listed = performance.now(); })
		.observe(document, {subtree: true, childList: true});` + longTasks
	if _, err := chromedp.Call(p.ctx, cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: watch}); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(p.ctx, performance.Enable, performance.EnableParams{TimeDomain: performance.EnableTimeDomainThreadTicks}); err != nil {
		t.Fatal(err)
	}
	p.do(chromedp.Navigate(url))
	return p
}

// atMost fails if a figure is above its limit, which is higher where other things run.
func atMost(t testing.TB, what string, got, strict, generous float64) {
	t.Helper()
	limit := generous
	if long {
		limit = strict
	}
	if got > limit {
		t.Errorf("%s: %.1f ms, want at most %.0f ms", what, got, limit)
	}
}

// TestLargeCapture: a capture of a million frames (50,000 except in make long), as its recorder
// left it, is shown at once and answers to each key and turn of the wheel.
func TestLargeCapture(t *testing.T) {
	frames := 50_000
	if long {
		frames = 1_000_000
	}
	s, finish := create(t, "large.uwc")
	recordLarge(t, s, frames).End(captures.Complete, "")
	url := serve(t, finish())
	p := openMeasured(t, url)
	p.see("#list .row", "Shop/Get0")
	shown := read[float64](p, "window.listed")
	t.Logf("the list is shown %.0f ms after the page began to load", shown)
	atMost(t, "list shown", shown, 1000, 5000)
	p.await(fmt.Sprintf("document.querySelector('footer').textContent.includes('%d,%03d exchanges')", (frames*3/10+1)/1000, (frames*3/10+1)%1000))
	if !long {
		// While 250,000 exchanges are decoded for the first time, the page must answer just as fast.
		p.await("!document.querySelector('footer').textContent.includes('reading')")
	}

	atMost(t, "scroll step", p.measure("scroll step", 40, func(int) { p.wheel("#list", 700) }), 16, 60)
	p.keys(kb.End)
	p.see("#list .row.selected", "Counter/Watch")
	atMost(t, "selection", p.measure("selection in the list", 20, func(int) { p.keys(kb.ArrowUp) }), 16, 60)
	p.keys("/")
	word := []string{"m", "e", "t", "h", "o", "d", ":", "W", "a", "t", "c", "h"}
	atMost(t, "filter key", p.measure("filter key", len(word), func(i int) { p.keys(word[i]) }), 16, 60)
	p.await("document.querySelectorAll('#list .row').length === 1")

	p.keys(kb.Enter, kb.ArrowDown, kb.Enter)
	p.see("#frames .row", "word")
	atMost(t, "scroll step", p.measure("scroll step in the frames", 40, func(int) { p.wheel("#frames", 700) }), 16, 60)
	p.keys(kb.End)
	p.see("#frames .row.selected", fmt.Sprint(frames*2/5-2))
	p.shot("large")
	tasks := read[[]float64](p, "tasks")
	t.Logf("tasks over 50 ms: %.0f ms", tasks)
	// Tasks are measured by the wall clock, so other programs of the machine are part of them: see TestHugeFrames for the
	// strict limit.
	for _, task := range tasks {
		atMost(t, "task", task, 1000, 1000)
	}
	p.quiet()
}

// TestLargeFrame: selections in a frame of 1 MB take little time.
func TestLargeFrame(t *testing.T) {
	var body bytes.Buffer
	for i := 0; body.Len() < 1<<20; i++ {
		body.Write(msg(1, num(1, uint64(i)), str(2, "an item of the list"), msg(3, num(1, 7), str(2, `{"a":[1,2,3]}`))))
	}
	s, finish := create(t, "frame.uwc")
	recordStream(t, s, "https://h.example/a.v1.A/Large", captures.Complete, "", piece{captures.Up, 0, 0, body.Bytes()})
	p := openMeasured(t, serve(t, finish()))
	p.see("#list .row", "A/Large")
	p.keys(kb.ArrowDown)
	p.see("#list .row.selected", "A/Large")
	p.keys(kb.Enter)
	p.see("#tree .row", "an item of the list")
	p.click("#tree-0")
	p.see("footer.chosen", "1")
	atMost(t, "selection", p.measure("selection in a frame of 1 MB", 30, func(int) { p.keys(kb.ArrowDown) }), 16, 60)
	atMost(t, "page", p.measure("page down in a frame of 1 MB", 10, func(int) { p.keys(kb.PageDown) }), 16, 60)
	atMost(t, "bytes", p.measure("scroll step in its bytes", 30, func(int) { p.wheel("#bytes", 500) }), 16, 60)
	for _, task := range read[[]float64](p, "tasks") {
		atMost(t, "task", task, 1000, 1000)
	}
	p.quiet()
}

// TestLiveInLargeCapture: what is recorded while a large capture is shown is visible soon.
func TestLiveInLargeCapture(t *testing.T) {
	frames := 20_000
	if long {
		frames = 200_000
	}
	s, finish := create(t, "live.uwc")
	rec := recordLarge(t, s, frames)
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := openMeasured(t, serve(t, s.Path))
	p.see("#list .row", "Shop/Get0")
	p.await("!document.querySelector('footer').textContent.includes('reading')")
	p.keys(kb.End)
	p.see("#list .row.selected", "Counter/Watch")

	// visible records what record records, and measures until an expression is true. The best of five counts: the
	// times are of the wall clock.
	visible := func(what string, record func(i int) string) {
		t.Helper()
		best := time.Hour
		for i := range 5 {
			expression := record(i)
			if err := s.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			committed := time.Now()
			p.await(expression)
			best = min(best, time.Since(committed))
			time.Sleep(300 * time.Millisecond)
		}
		t.Logf("%s is visible %v after its commit", what, best.Round(time.Millisecond))
		atMost(t, what, float64(best.Milliseconds()), 200, 2000)
	}
	text := "[...document.querySelectorAll(%q)].some(e => e.textContent.includes(%q))"
	visible("a new exchange", func(i int) string {
		recordStream(t, s, fmt.Sprintf("https://api.example.com/live.v1.Live/Call%d", i), captures.Complete, "", piece{captures.Up, 0, 0, str(1, "x")})
		return fmt.Sprintf(text, "#list .row", fmt.Sprintf("Live/Call%d", i))
	})
	p.keys(kb.Enter)
	p.see("#frames .row", "word 0")
	p.click("#frames")
	p.keys(kb.End)
	p.see("#frames .row.selected", fmt.Sprintf("word %d", frames*2/5-2))
	visible("a new frame of a long stream", func(i int) string {
		rec.Chunk(captures.Down, envelope.Append(nil, 0, str(1, fmt.Sprintf("live %d", i))))
		return fmt.Sprintf(text, "#frames .row", fmt.Sprintf("live %d", i))
	})
	p.quiet()
	rec.End(captures.Complete, "")
	finish()
}

// BenchmarkLargeCapture measures the answers to the page for a large capture: the first rows of
// a list that was never made, and all that follows.
func BenchmarkLargeCapture(b *testing.B) {
	s, finish := create(b, "large.uwc")
	recordLarge(b, s, 50_000).End(captures.Complete, "")
	path := finish()
	b.Run("first rows", func(b *testing.B) {
		for b.Loop() {
			ask(b, serve(b, path), "GET", "/api/list?from=0&to=200", nil)
		}
	})
	base := serve(b, path)
	for _, q := range []string{"list?from=6000&to=6200", "list?filter=host:shop.*", "list?sort=-duration", "changes?after=x", "frames?x=12501&all=1&from=9000&to=9200"} {
		b.Run(q, func(b *testing.B) {
			for b.Loop() {
				ask(b, base, "GET", "/api/"+q, nil)
			}
		})
	}
}
