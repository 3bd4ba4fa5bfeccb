package ui_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"unwire/captures/need"
	"unwire/cmd/internal/cli"
	"unwire/mitm/intercept"
)

// holding starts 'unwire capture --intercept dir:up' with a shell script, whose arguments are a file with a message, the
// URL of a server, and a file that exists once the test has ended. It returns the capture, and the channels of the messages
// that the server receives and of the recorder's output.
func holding(t *testing.T, script string) (capture string, got chan []byte, ended chan string) {
	t.Helper()
	need.Program(t, "curl", "curl", "--version")
	need.Modules(t, "node")
	need.Program(t, "chromium", "chromium", "--version")
	got = make(chan []byte, 10)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // a request whose frame was dropped
		}
		got <- body
		w.Header().Set("Content-Type", "application/proto")
		_, _ = w.Write(body)
	}))
	t.Cleanup(srv.Close)
	dir := t.TempDir()
	message := filepath.Join(dir, "message")
	capture = filepath.Join(dir, "held.uwc")
	if err := os.WriteFile(message, append(str(1, "blue shoe"), num(2, 3)...), 0o600); err != nil {
		t.Fatal(err)
	}
	ended = make(chan string, 1)
	go func() {
		var out, said bytes.Buffer
		status := cli.Run([]string{"capture", "-o", capture, "--intercept", "dir:up", "--", "sh", "-c", script, message, srv.URL, capture + ".over"}, strings.NewReader(""), &out, &said)
		if status != 0 {
			t.Errorf("capture: status %d\n%s", status, said.String())
		}
		ended <- said.String()
	}()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(capture); err == nil {
			return capture, got, ended
		}
		if time.Now().After(deadline) {
			t.Fatal("no capture was begun")
		}
	}
}

// TestHeldFrames: frames that 'unwire capture --intercept' holds are shown when they arrive, edited, released and
// dropped by clicks and keys; the server gets what was decided.
func TestHeldFrames(t *testing.T) {
	script := `for i in 1 2 3 4 5; do curl -s -m 60 -H content-type:application/proto --data-binary @"$0" "$1/test.v1.Echo/Get$i" >/dev/null; done`
	capture, got, ended := holding(t, script)
	p := open(t, serve(t, capture), 1280, 800)

	// The row of the exchange says that its frame is held; a click there opens it.
	p.see(".heldframes", "Echo/Get1")
	p.see("#list .row .tag", "held ↑ 0")
	p.accessible()
	p.click("#list-0 .tag")
	p.clickText("#edittree .row", "blue shoe")
	p.click("#newvalue")
	p.keys(kb.End, " XL", kb.Enter)
	p.see(".helded", "1=blue shoe XL")

	// A value that the field's type does not allow is refused.
	p.clickText("#edittree .row", "3")
	p.click("#newvalue")
	p.keys(kb.End, "x", kb.Enter)
	p.see(".helded [role=alert]", "3x")
	p.accessible()
	p.shot("held")
	p.dark(true)
	p.accessible()
	p.shot("held-dark")
	p.dark(false)
	select {
	case b := <-got:
		t.Errorf("%q was sent before the frame was released", b)
	default:
	}
	p.clickText(".helded button", "Release as edited")
	wantSent := func(want []byte) {
		t.Helper()
		select {
		case b := <-got:
			if !bytes.Equal(b, want) {
				t.Errorf("sent: %q, want %q", b, want)
			}
		case <-time.After(patience):
			t.Fatal("nothing was sent")
		}
	}
	wantSent(append(str(1, "blue shoe XL"), num(2, 3)...))
	p.see(".toast", "released as edited")

	// By keys: the next frame is opened, the edits are discarded, and it is released as it was.
	original := append(str(1, "blue shoe"), num(2, 3)...)
	p.see(".heldframes", "Echo/Get2")
	p.click("#list")
	p.keys("i")
	p.clickText("#edittree .row", "3")
	p.click("#newvalue")
	p.keys(kb.End, "4", kb.Enter)
	p.see(".helded", "2=34")
	p.clickText(".helded button", "Discard")
	p.await("!document.querySelector('.helded').textContent.includes('2=34')")
	p.clickText(".heldframes li button", "Release")
	wantSent(original)

	// A dropped frame is not sent; all that are held are released at once.
	p.see(".heldframes", "Echo/Get3")
	p.clickText(".heldframes li button", "Drop")
	p.see(".heldframes", "Echo/Get4")
	p.clickText(".heldframes header button", "Release all")
	for sent := []byte(nil); !bytes.Equal(sent, original); {
		// The dropped message leaves an empty request.
		select {
		case sent = <-got:
			if len(sent) != 0 && !bytes.Equal(sent, original) {
				t.Errorf("sent: %q", sent)
			}
		case <-time.After(patience):
			t.Fatal("nothing was sent")
		}
	}
	p.see(".heldframes", "Echo/Get5")
	p.clickText(".heldframes li button", "Release")
	wantSent(original)
	p.await("!document.querySelector('.heldframes')")
	<-ended
	p.see("#list .row", "Echo/Get5")
	p.quiet()
}

// TestHeldPanels: two frames are held at once, and two browsers edit them. Each shows the edits of the other, and what
// becomes of a frame whose panel is open, also when the recording ends.
func TestHeldPanels(t *testing.T) {
	capture, got, ended := holding(t, `send() { curl -s -m 60 -H content-type:application/proto --data-binary @"$0" "$1/test.v1.Echo/Get$3" >/dev/null & }
		send "$@" 1; sleep 1; send "$@" 2; until [ -e "$2" ]; do sleep 0.1; done`)
	address := serve(t, capture)
	one, two := open(t, address, 1280, 800), open(t, address, 1280, 800)
	set := func(p *tab, field, keys string) {
		t.Helper()
		p.clickText("#edittree .row", field)
		p.click("#newvalue")
		p.keys(kb.End, keys, kb.Enter)
	}
	const first, second = ".heldframes li:nth-child(1)", ".heldframes li:nth-child(2)"
	for _, p := range []*tab{one, two} {
		p.see(first, "Get1")
		p.see(second, "Get2")
		p.click(first + " button")
	}

	// Both edit the first frame.
	set(one, "blue shoe", " XL")
	one.see(".helded", "1=blue shoe XL")
	two.see(".helded", "1=blue shoe XL")
	two.see(first, "Release as edited")
	set(two, "3", "4")
	one.see(".helded", "2=34")

	// The panel of the second frame has its own edits and errors.
	one.click(second + " button")
	one.see(second+".selected", "Get2")
	one.await("!document.querySelector('.helded').textContent.includes('2=34')")
	set(one, "3", "x")
	one.see(".helded [role=alert]", "3x")
	one.click(first + " button")
	one.see(".helded", "2=34")
	one.await("!document.querySelector('.helded [role=alert]')")

	// The other browser releases the frame whose panel is open here.
	two.clickText(".helded button", "Release as edited")
	two.see(".toast", "released as edited")
	one.see(".toast", "Frame 1 is not held any more")
	one.await("!document.querySelector('.helded')")
	if want, sent := append(str(1, "blue shoe XL"), num(2, 34)...), <-got; !bytes.Equal(sent, want) {
		t.Errorf("sent: %q, want %q", sent, want)
	}

	// The recording ends while the panel is open: what is held is forwarded unchanged.
	one.click(first + " button")
	set(one, "blue shoe", " XS")
	one.see(".helded", "1=blue shoe XS")
	if err := os.WriteFile(capture+".over", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	one.see(".toast", "the recording has ended. It was forwarded without your edits.")
	one.await("!document.querySelector('.heldframes')")
	<-ended
	if want, sent := append(str(1, "blue shoe"), num(2, 3)...), <-got; !bytes.Equal(sent, want) {
		t.Errorf("sent: %q, want %q", sent, want)
	}
	for _, p := range []*tab{one, two} {
		p.accessible()
		p.quiet()
	}
}

// TestKilledRecorder: the file that a killed recorder leaves is no error.
func TestKilledRecorder(t *testing.T) {
	t.Parallel()
	capture := sample(t)
	holder := intercept.New(intercept.Options{})
	defer holder.Close()
	recorder, err := intercept.Serve(capture, holder)
	if err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadFile(capture + ".intercept")
	if err := errors.Join(err, recorder.Close(), os.WriteFile(capture+".intercept", left, 0o600)); err != nil {
		t.Fatal(err)
	}
	if resp, text := ask(t, serve(t, capture), "GET", "/api/held", nil); resp.StatusCode != http.StatusOK || !strings.Contains(text, `"held":[]`) {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
}

// TestHeldIsBounded: what cannot be decided is an error that says so.
func TestHeldIsBounded(t *testing.T) {
	t.Parallel()
	base := serve(t, sample(t))
	for body, want := range map[string]string{
		`{"action":"release"}`: "is recording to this file",
		`{"action":"drop`:      "malformed",
		`{"edit":"1=x"}`:       "malformed",
	} {
		resp, text := ask(t, base, "POST", "/api/held/decide?id=1", func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader(body)) })
		if resp.StatusCode != http.StatusBadRequest || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", body, resp.StatusCode, text)
		}
	}
	resp, text := ask(t, base, "POST", "/api/held/edit?id=1", func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader(`{"edit":"1=x"}`)) })
	if resp.StatusCode != http.StatusGone || !strings.Contains(text, "no longer holds the frame 1") {
		t.Errorf("%d %s", resp.StatusCode, text)
	}

	// The page asks for rows while the frame is released; that is no error.
	resp, text = ask(t, base, "GET", "/api/held/rows?id=1&from=0&to=10", nil)
	if resp.StatusCode != http.StatusOK || !strings.Contains(text, `"rows":[]`) {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
}
