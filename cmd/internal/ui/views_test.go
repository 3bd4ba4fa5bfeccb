package ui_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"unwire/captures"
)

// TestTranscript: who said what, with tool calls; a piece leads to its frames.
func TestTranscript(t *testing.T) {
	p := open(t, serve(t, sample(t)), 1280, 800)
	p.see("#list .row", "AgentService/Run")
	p.click("#list-0")
	p.await("location.hash.includes('x=1')")
	p.keys("gt")
	p.see(".turn.user", "What does Backoff do?")
	p.see(".turn.assistant", "Backoff waits longer after each failure and adds jitter")
	p.see("table", "Correction")
	p.accessible()
	p.shot("transcript")
	p.click(".turn.assistant .frames-link")
	p.see("#frames .row.selected", "Backoff waits longer")
	p.quiet()
}

// objects returns the JSON objects of a member of an answer, one on each line.
func objects(t *testing.T, answer, member string) string {
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(answer), &members); err != nil {
		t.Fatalf("%v: %s", err, answer)
	}
	var list []json.RawMessage
	if json.Unmarshal(members[member], &list) != nil {
		list = []json.RawMessage{members[member]}
	}
	var b strings.Builder
	for _, o := range list {
		b.Write(o)
		b.WriteByte('\n')
	}
	return b.String()
}

// TestObjectsOfCommands: transcripts and differences are those that the commands print, as agents get them, too (see
// TestMCPHasTheObjectsOfCommands).
func TestObjectsOfCommands(t *testing.T) {
	t.Parallel()
	file := sample(t)
	base := serve(t, file)
	for _, x := range []struct {
		path, member string
		status       int
		command      []string
	}{
		{"transcript?x=1", "transcript", 0, []string{"chat", "--json", file, "1"}},
		{"transcript?x=2", "transcript", 0, []string{"chat", "--json", file, "2"}},
		{"transcript?x=3", "transcript", 0, []string{"chat", "--json", file, "3"}},
		{"diff?a=1/up/0&b=2/up/0", "changes", 1, []string{"diff", "--json", "--hex", file + "#1/up/0", file + "#2/up/0"}},
		{"diff?a=1&b=2", "changes", 1, []string{"diff", "--json", "--hex", file + "#1", file + "#2"}},
		{"diff?a=5&b=6", "changes", 1, []string{"diff", "--json", "--hex", file + "#5", file + "#6"}},
		{"diff?a=5&b=5", "changes", 0, []string{"diff", "--json", "--hex", file + "#5", file + "#5"}},
	} {
		_, body := ask(t, base, "GET", "/api/"+x.path, nil)
		command := append([]string{x.command[0], "--proto=none"}, x.command[1:]...)
		if got, want := objects(t, body, x.member), runStatus(t, x.status, command...); got != want {
			t.Errorf("%s:\n%s\n%s prints\n%s", x.path, got, x.command, want)
		}
	}
	for path, want := range map[string]int{"transcript?x=99": http.StatusNotFound, "diff?a=1/up/9&b=1": http.StatusBadRequest, "diff?a=x": http.StatusBadRequest} {
		if resp, body := ask(t, base, "GET", "/api/"+path, nil); resp.StatusCode != want {
			t.Errorf("%s: %d %s", path, resp.StatusCode, body)
		}
	}
}

// TestLabel: "this is wrong" appends a label.
func TestLabel(t *testing.T) {
	file := sample(t)
	t.Chdir(t.TempDir())
	p := open(t, serve(t, file), 1280, 800)
	p.see("#list .row", "AgentService/Run")
	p.click("#list-0")
	p.await("location.hash.includes('x=1')")
	p.keys("gt")
	p.see(".label", "Wrong role?")
	p.click(".label select")
	p.keys("thinking", kb.Enter)
	p.clickText(".label button", "Label")
	p.see(".toast", "to labels.jsonl")
	data, err := os.ReadFile("labels.jsonl")
	if err != nil || !strings.Contains(string(data), `"role":"thinking"`) {
		t.Errorf("labels.jsonl: %s (%v)", data, err)
	}
	p.quiet()
}

// TestDiff: two frames are compared by structure and by bytes, by an address that is typed.
func TestDiff(t *testing.T) {
	file := sample(t)
	base := serve(t, file)
	p := open(t, base, 1280, 800)
	p.see("#list .row", "AgentService/Run")
	p.keys("gd")
	p.see("h1", "Difference")
	p.accessible()
	p.click(".sides input[aria-label='Exchange or frame of A']")
	p.keys("1/up/0", kb.Tab)
	p.await("location.hash.includes('a=1%2Fup%2F0')")
	p.click(".sides input[aria-label='Exchange or frame of B']")
	p.keys("2/up/0", kb.Tab)
	p.see(".changes", "composer-2")
	p.see(".bytediff .old", "15 57 68 61 74 20") // What
	p.see(".bytediff .new", "48 65 6c 6c 6f")    // Hello
	p.accessible()
	p.shot("diff")
	p.quiet()

	_, body := ask(t, base, "GET", "/api/diff?a=1/up/0&b=2/up/0", nil)
	var answer struct{ Changes []json.RawMessage }
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, c := range answer.Changes {
		got.WriteString(string(c) + "\n")
	}
	if want := runStatus(t, 1, "diff", "--proto=none", "--json", "--hex", file+"#1/up/0", file+"#2/up/0"); got.String() != want {
		t.Errorf("%s\ndiff prints\n%s", got.String(), want)
	}
}

// shopProto defines a part of what the calls of withDefinitions have.
const shopProto = `syntax = "proto3";
package shop.v1;
service Shop { rpc Get(GetRequest) returns (Item); }
message GetRequest { uint64 id = 1; string reason = 2; }
message Item { string name = 1; Price price = 2; bool sold = 3; uint64 stock = 4; }
message Price { uint64 cents = 1; string currency = 2; }
`

// withDefinitions is a capture that keeps definitions, of which its traffic shows a part,
// and contradicts one.
func withDefinitions(t *testing.T) string {
	t.Helper()
	s, finish := create(t, "shop.uwc")
	if err := s.PutDefinition(t.Context(), captures.Definition{Kind: captures.ProtoFile, Name: "shop/v1/shop.proto", Data: []byte(shopProto), Active: true}); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		rec, err := s.Begin(captures.Exchange{Method: "POST", URL: "https://shop.example.org/shop.v1.Shop/Get", HTTP: "2", Started: started, RequestHeaders: captures.Headers{{Name: "content-type", Value: "application/proto"}}})
		if err != nil {
			t.Fatal(err)
		}
		rec.Chunk(captures.Up, num(1, uint64(7+i)))
		rec.Response(200, captures.Headers{{Name: "content-type", Value: "application/proto"}})
		item := append(str(1, "blue shoe"), msg(2, num(1, 1999), str(2, "EUR"))...)
		item = append(item, str(4, "many")...)
		rec.Chunk(captures.Down, append(item, str(9, "a field that nobody declared")...))
		rec.End(captures.Complete, "")
	}
	return finish()
}

// TestSchema: coverage is painted on the definitions; references, inferred definitions and
// updates are shown.
func TestSchema(t *testing.T) {
	p := open(t, serve(t, withDefinitions(t)), 1280, 800)
	p.see("#list .row", "Shop/Get")
	p.keys("gs")
	p.see(".head", "1 unknown field")
	p.see(".head", "1 contradiction")
	p.see("#types .row", "shop.v1.Price")
	p.clickText("#types .row", "shop.v1.Item")
	for state, field := range map[string]string{"seen": "price", "never": "sold", "contradicted": "stock", "unknown": "9"} {
		p.see(".fields tr."+state, field)
	}
	p.see(".refs", "shop.v1.Shop.Get")
	p.see(".graph .self", "Item")
	p.see(".graph a", "Price")
	p.see("pre.proto", "message Item")

	// The values of a field, each with its frame, and the evidence for its type.
	p.clickText(".fields a", "price")
	p.see(".fields", "Without definitions it reads as")
	p.see(".fields table", "#1/down/0")
	p.accessible()
	p.shot("schema")
	p.clickText(".graph a", "Price")
	p.see("h2", "shop.v1.Price")
	p.see(".refs", "shop.v1.Item.price")

	p.clickText(".sub a", "Updates")
	p.see(".update .new", "= 9;")
	p.accessible()
	p.shot("updates")
	p.clickText(".sub a", "Inferred")
	p.see(".besides pre", "service Shop")
	p.see(".besides", "Declared: shop.v1.Price")
	p.accessible()
	p.dark(true)
	p.accessible()
	p.shot("inferred-dark")
	p.quiet()
}

// shop is a server that answers with the name that it is asked for.
func shop(t *testing.T, asked *atomic.Int32) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/proto")
		_, _ = w.Write(msg(1, body))
	}))
	t.Cleanup(srv.Close)
	return srv
}

// TestReplay: the tree is edited, the plan is shown, the request is sent to loopback, and the
// verdict is shown with the difference. Another host is refused.
func TestReplay(t *testing.T) {
	var asked atomic.Int32
	srv := shop(t, &asked)
	s, finish := create(t, "replay.uwc")
	record := func(url string) {
		rec, err := s.Begin(captures.Exchange{Method: "POST", URL: url, HTTP: "1.1", Started: started, RequestHeaders: captures.Headers{{Name: "content-type", Value: "application/proto"}}})
		if err != nil {
			t.Fatal(err)
		}
		rec.Chunk(captures.Up, append(str(1, "blue shoe"), num(2, 3)...))
		rec.Response(200, captures.Headers{{Name: "content-type", Value: "application/proto"}})
		rec.Chunk(captures.Down, msg(1, str(1, "blue shoe"), num(2, 3)))
		rec.End(captures.Complete, "")
	}
	record(srv.URL + "/test.v1.Echo/Get")
	record("https://shop.example.org/test.v1.Echo/Get")
	p := open(t, serve(t, finish()), 1280, 900)
	p.see("#list .row", "Echo/Get")
	p.click("#list-0")
	p.await("location.hash.includes('x=1')")
	p.keys("gr")
	p.see(".page", "Frame 0: 13 B")
	p.accessible()
	p.clickText("#edittree .row", "blue shoe")
	p.click("#newvalue")
	p.keys(kb.End, " XL", kb.Enter)
	p.see(".edits", "1=blue shoe XL")
	p.see("#edittree .row", "edited")
	p.see(".page", "Frame 0: 16 B")
	if n := asked.Load(); n != 0 {
		t.Errorf("the plan sent %d requests", n)
	}
	p.shot("replay")
	p.clickText("button", "Send")
	p.see("h2", "Verdict: differs")
	p.see(".changes .new", "blue shoe XL")
	if n := asked.Load(); n != 1 {
		t.Errorf("%d requests were sent", n)
	}
	p.accessible()
	p.shot("verdict")

	// A value that the field's type does not allow is refused before anything is sent.
	p.clickText("#edittree .row", "3")
	p.click("#newvalue")
	p.keys(kb.End, "x", kb.Enter)
	p.see("[role=alert]", "2")
	p.await("document.querySelector('button.main').disabled")

	// Another host.
	p.keys(kb.Escape)
	p.do()
	p.click("#edittree")
	p.keys(kb.Escape)
	p.see("#list .row", "Echo/Get")
	p.click("#list-1")
	p.await("location.hash.includes('x=2')")
	p.keys("gr")
	p.see(".page .alarm", "this page sends to this machine only")
	p.await("document.querySelector('button.main').disabled")
	p.quiet()
}

// TestPageCannotGoLive: a request of the page with a flag in it reaches no other host.
func TestPageCannotGoLive(t *testing.T) {
	t.Parallel()
	base := serve(t, sample(t))
	for _, body := range []string{
		`{"to":"https://shop.example.org","edits":["--live"]}`,
		`{"to":"--live"}`,
		`{"to":"https://shop.example.org","edits":[],"live":true}`,
		`{"to":"https://shop.example.org"}`,
	} {
		resp, text := ask(t, base, "POST", "/api/replay/send?x=4", func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader(body)) })
		var answer struct {
			Result struct{ Verdict string }
		}
		if err := json.Unmarshal([]byte(text), &answer); err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != http.StatusBadRequest && answer.Result.Verdict != "refused" {
			t.Errorf("%s: %d %s", body, resp.StatusCode, text)
		}
	}
}

// TestProbe: the plan, the progress and the journal of a probe of a server on this machine.
func TestProbe(t *testing.T) {
	var asked atomic.Int32
	srv := shop(t, &asked)
	p := open(t, serve(t, sample(t)), 1280, 900)
	p.see("#list .row", "AgentService/Run")
	p.keys("gp")
	p.see("h1", "Probe")
	p.accessible()
	p.click(".sides input[placeholder='http://127.0.0.1:8080']")
	p.keys(srv.URL, kb.Tab, "/test.v1.Echo/Get", kb.Tab, kb.Tab)
	p.clickText("button", "Plan")
	p.see("h2", "Plan")
	p.see(".page", "At most")
	if n := asked.Load(); n != 0 {
		t.Errorf("the plan sent %d requests", n)
	}
	p.clickText("button", "Start")
	p.see("h2", "Ended")
	if asked.Load() == 0 {
		t.Error("nothing was sent")
	}
	p.await("/: [1-9]/.test([...document.querySelectorAll('h2')].pop().innerText)")
	p.accessible()
	p.shot("probe")
	p.quiet()
}
