package ui_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"unwire/captures/need"
)

// A tab is the page in a browser, which is used by a person's clicks and keys alone. What it
// shows is read by expressions that change nothing.
type tab struct {
	t   testing.TB
	ctx context.Context

	mu     sync.Mutex
	errors []string
}

// open opens the page in a new browser.
func open(t testing.TB, url string, width, height int64) *tab {
	t.Helper()
	path := need.Program(t, "chromium", "chromium", "--version")
	ctx, cancel := chromedp.NewExecAllocator(t.Context(),
		chromedp.ExecPath(path), chromedp.Headless, chromedp.NoSandbox, chromedp.NoFirstRun, chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true), chromedp.Flag("no-default-browser-check", true))
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	p := &tab{t: t, ctx: ctx}
	p.do(chromedp.EmulateViewport(width, height))
	go func() {
		for m, err := range chromedp.Console(ctx) {
			if err != nil {
				return
			}
			if m.IsException() || m.Type == "error" || m.Source == "security" {
				p.mu.Lock()
				p.errors = append(p.errors, m.String())
				p.mu.Unlock()
			}
		}
	}()
	p.do(chromedp.Navigate(url))
	return p
}

// do runs steps, each within a time.
func (p *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	for _, s := range steps {
		if err := chromedp.Do(p.ctx, s); err != nil {
			p.t.Fatal(err)
		}
	}
}

// keys types keys. A key press is one event with its text, as of a keyboard: if the page handles
// the key, no text is typed.
func (p *tab) keys(keys ...string) {
	p.t.Helper()
	for _, word := range keys {
		for _, r := range word {
			k, ok := kb.Keys[r]
			if !ok {
				p.t.Fatalf("there is no key for %q", r)
			}
			e := input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeRawKeyDown, Key: k.Key, Code: k.Code, WindowsVirtualKeyCode: k.Windows, NativeVirtualKeyCode: k.Native}
			if k.Text != "" {
				e.Type, e.Text, e.UnmodifiedText = input.DispatchKeyEventTypeKeyDown, k.Text, k.Unmodified
			}
			if k.Shift {
				e.Modifiers = 8
			}
			for _, typ := range []input.DispatchKeyEventType{e.Type, input.DispatchKeyEventTypeKeyUp} {
				if e.Type = typ; typ == input.DispatchKeyEventTypeKeyUp {
					e.Text, e.UnmodifiedText = "", ""
				}
				if _, err := chromedp.Call(p.ctx, input.DispatchKeyEvent, e); err != nil {
					p.t.Fatal(err)
				}
			}
		}
	}
}

// click clicks what a selector of CSS names.
func (p *tab) click(selector string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, chromedp.Click(selector)); err != nil {
		p.t.Fatalf("click %s: %v\n%s", selector, err, p.text("body"))
	}
}

// clickText clicks the first element of a selector that has a text.
func (p *tab) clickText(selector, text string) {
	p.t.Helper()
	p.await(fmt.Sprintf("[...document.querySelectorAll(%q)].some(e => e.textContent.includes(%q))", selector, text))
	at := read[[]float64](p, fmt.Sprintf("(() => { const r = [...document.querySelectorAll(%q)].find(e => e.textContent.includes(%q)).getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2] })()", selector, text))
	p.do(chromedp.MouseClickXY(at[0], at[1]))
}

// read evaluates an expression, which must change nothing.
func read[T any](p *tab, expression string) T {
	p.t.Helper()
	v, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// text returns what a selector shows.
func (p *tab) text(selector string) string {
	p.t.Helper()
	return read[string](p, fmt.Sprintf("document.querySelector(%q)?.innerText ?? ''", selector))
}

// patience is how long await waits.
const patience = 2 * time.Minute

// await waits until an expression is true.
func (p *tab) await(expression string) {
	p.t.Helper()
	deadline := time.Now().Add(patience)
	for !read[bool](p, "Boolean("+expression+")") {
		if time.Now().After(deadline) {
			p.shot("failed-" + strings.ReplaceAll(p.t.Name(), "/", "-"))
			p.t.Fatalf("not within %v: %s\nthe page shows:\n%s\nconsole: %q", patience, expression, p.text("body"), p.said())
		}
		time.Sleep(30 * time.Millisecond)
	}
}

// see waits until a selector shows a text.
func (p *tab) see(selector, text string) {
	p.t.Helper()
	p.await(fmt.Sprintf("[...document.querySelectorAll(%q)].some(e => (e.innerText ?? e.textContent).includes(%q))", selector, text))
}

func (p *tab) said() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.errors...)
}

// quiet fails if the page wrote an error to the console, such as a violation of its policy.
func (p *tab) quiet() {
	p.t.Helper()
	for _, m := range p.said() {
		if strings.Contains(m, "status of 400") {
			continue // an answer, such as about a filter, that the page shows
		}
		p.t.Errorf("console: %s", m)
	}
}

// dark has the page shown in dark colours.
func (p *tab) dark(on bool) {
	p.t.Helper()
	value := "light"
	if on {
		value = "dark"
	}
	_, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: value}}})
	if err != nil {
		p.t.Fatal(err)
	}
}

// shot saves a screenshot where screenshots are wanted.
func (p *tab) shot(name string) {
	p.t.Helper()
	if shots == "" {
		return
	}
	time.Sleep(150 * time.Millisecond)
	data, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(shots, name+".png"), data, 0o644); err != nil {
		p.t.Fatal(err)
	}
}

// accessible fails if axe-core finds a violation in what the page shows.
func (p *tab) accessible() {
	p.t.Helper()
	need.Modules(p.t, "node")
	axe, err := os.ReadFile("node/node_modules/axe-core/axe.min.js")
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := chromedp.Run(p.ctx, chromedp.Evaluate[any](string(axe)+"; 0")); err != nil {
		p.t.Fatal(err)
	}
	found, err := chromedp.Run(p.ctx, chromedp.Evaluate[[]string](`axe.run().then(r => r.violations.map(v =>
		v.id + ": " + v.help + "\n  " + v.nodes.slice(0, 3).map(n => n.html.slice(0, 200) + "\n    " + n.failureSummary).join("\n  ")))`, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatal(err)
	}
	for _, v := range found {
		p.t.Errorf("not accessible: %s", v)
	}
}
