package ui_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/cmd/internal/query"
)

// TestList: the list is filtered, completed, sorted, marked and noted by clicks and keys, and each
// state is a URL.
func TestList(t *testing.T) {
	file := sample(t)
	base := serve(t, file)
	p := open(t, base, 1280, 800)
	p.see("#list .row", "AgentService/Run")
	p.see("#list .row.failed", "connection refused")
	p.see("footer", "43 exchanges")
	p.accessible()
	p.shot("list")

	// The filter, from the keyboard.
	p.keys("/", "host:sh")
	p.see("#offers li", "shop.example.org")
	p.shot("completion")
	p.keys(kb.ArrowDown, kb.Enter)
	p.see("footer", "40 exchanges of 43")
	p.keys(kb.Enter)
	p.await("document.activeElement.id === 'list'")
	p.clickText(".filter button", "Save filter")
	p.see(".chip", "host:shop.example.org")
	p.clickText(".filter button", "Clear")
	p.see("footer", "43 exchanges")
	p.clickText(".chip button", "host:shop")
	p.see("footer", "40 exchanges of 43")
	p.clickText(".chip button", "host:shop")
	p.see("footer", "43 exchanges")
	p.accessible()

	// A filter with an error says where it is.
	p.keys("/", "hots:x", kb.Enter)
	p.see("#filter-error", `column 1: "hots" is not a key of filters; did you mean "host"?`)
	p.accessible()
	p.clickText(".filter button", "Clear")

	// The order.
	p.clickText(".sort", "Duration")
	p.clickText(".sort", "Duration")
	p.see("#list-0", "3.10 s")

	// A mark and a note.
	p.click("#list")
	p.keys(kb.Home)
	p.await("location.hash.includes('x=1')")
	p.keys("m")
	p.see("#list .row.selected .mark", "★")
	p.keys("n")
	p.see("dialog", "Anybody who gets the capture can read its notes")
	p.accessible()
	p.keys("the one that works")
	p.shot("note")
	p.clickText("dialog button", "Store")
	p.see("#list .row.selected .noted", "the one that works")
	c, err := query.Open(file, store.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	notes, err := c.Notes(t.Context(), 1)
	if err != nil || len(notes) != 2 {
		t.Errorf("the capture has the notes %v (%v)", notes, err)
	}

	// The same URL in another browser shows the same.
	again := open(t, read[string](p, "location.href"), 800, 700)
	again.see("#list .row.selected", "Run")
	again.see("#list-0", "3.10 s")
	again.accessible()
	again.shot("list-800")
	again.dark(true)
	again.accessible()
	again.shot("list-800-dark")
	again.quiet()
	p.quiet()
}

// TestHelp: the keys are listed by a key.
func TestHelp(t *testing.T) {
	p := open(t, serve(t, sample(t)), 1280, 800)
	p.see("#list .row", "Run")
	p.keys("?")
	p.see("dialog", "why this type")
	p.accessible()
	p.shot("help")
	p.keys(kb.Escape)
	p.await("!document.querySelector('dialog')")
	p.keys(kb.ArrowDown)
	p.see("#list .row.selected", "Run")
	p.quiet()
}

// TestKeysAtOnce: keys and clicks that come before the rows were loaded, and before the page was
// painted, are not lost.
func TestKeysAtOnce(t *testing.T) {
	url := serve(t, sample(t))
	for name, events := range map[string]string{
		"keys as soon as there is a list": `if (!document.querySelector("#list")) return;
			for (const key of ["ArrowDown", "Enter"])
				document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true, cancelable: true}));`,
		"a click as soon as there is a row": `if (!document.querySelector("#list .row b")) return;
			document.querySelector("#list-0").click();
			document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key: "Enter", bubbles: true, cancelable: true}));`,
	} {
		t.Run(name, func(t *testing.T) {
			p := open(t, "about:blank", 1280, 800)
			script := `const watched = new MutationObserver(() => {` + events + `
				watched.disconnect();
			});
			watched.observe(document, {subtree: true, childList: true});`
			if _, err := chromedp.Call(p.ctx, cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: script}); err != nil {
				t.Fatal(err)
			}
			p.do(chromedp.Navigate(url))
			p.see("#frames .row", "1")
			p.quiet()
		})
	}
}

// TestNoToken: without the token, the page shows nothing of the capture.
func TestNoToken(t *testing.T) {
	base, _, _ := strings.Cut(serve(t, sample(t)), "#")
	p := open(t, base, 800, 600)
	p.see("main", "The URL has no token")
	p.accessible()
}

// TestLive: an exchange and its frames are visible soon after they were recorded.
func TestLive(t *testing.T) {
	s, finish := create(t, "live.uwc")
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := open(t, serve(t, s.Path), 1280, 800)
	p.see("#list", "No exchange yet")
	recordStream(t, s, "https://api.example.com/a.v1.A/First", captures.Complete, "", piece{captures.Up, 0, 0, str(1, "x")})
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.see("#list .row", "A/First")
	recordStream(t, s, "https://api.example.com/a.v1.A/Second", captures.Complete, "", piece{captures.Up, 0, 0, str(1, "x")})
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	committed := time.Now()
	p.see("#list .row", "A/Second")
	t.Logf("visible %v after the commit", time.Since(committed).Round(time.Millisecond))
	p.quiet()
	finish()
}

// TestListIsThatOfLs: the list of the page has the lines of 'unwire ls --json'.
func TestListIsThatOfLs(t *testing.T) {
	t.Parallel()
	file := sample(t)
	base := serve(t, file)
	for _, args := range [][2]string{{"", ""}, {"host:shop.*", "-duration"}, {"code:!ok", "code"}, {`text:"rate limit"`, ""}, {"path:1.1=Hello", "size"}} {
		_, body := ask(t, base, "GET", "/api/list?"+url.Values{"filter": {args[0]}, "sort": {args[1]}}.Encode(), nil)
		var answer struct {
			Total     int               `json:"total"`
			Exchanges []json.RawMessage `json:"exchanges"`
		}
		if err := json.Unmarshal([]byte(body), &answer); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
		var got strings.Builder
		for _, l := range answer.Exchanges {
			got.Write(l)
			got.WriteByte('\n')
		}
		want := run(t, "ls", "--json", "--filter="+args[0], "--sort="+args[1], file)
		if got.String() != want || answer.Total != strings.Count(want, "\n") {
			t.Errorf("%q:\n%s\nls prints\n%s", args, got.String(), want)
		}
	}
}
