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

// TestHeldFrames: frames that 'unwire capture --intercept' holds are shown when they arrive, edited, released and
// dropped by clicks and keys; the server gets what was decided.
func TestHeldFrames(t *testing.T) {
	need.Program(t, "curl", "curl", "--version")
	got := make(chan []byte, 10)
	need.Modules(t, "node")
	need.Program(t, "chromium", "chromium", "--version")
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // a request whose frame was dropped
		}
		got <- body
		w.Header().Set("Content-Type", "application/proto")
		_, _ = w.Write(body)
	}))
	defer srv.Close()
	dir := t.TempDir()
	message, capture := filepath.Join(dir, "message"), filepath.Join(dir, "held.uwc")
	if err := os.WriteFile(message, append(str(1, "blue shoe"), num(2, 3)...), 0o600); err != nil {
		t.Fatal(err)
	}
	ended := make(chan string, 1)
	go func() {
		var out, said bytes.Buffer
		script := `for i in 1 2 3 4 5; do curl -s -m 60 -H content-type:application/proto --data-binary @"$0" "$1/test.v1.Echo/Get$i" >/dev/null; done`
		status := cli.Run([]string{"capture", "-o", capture, "--intercept", "dir:up", "--", "sh", "-c", script, message, srv.URL}, strings.NewReader(""), &out, &said)
		if status != 0 {
			t.Errorf("capture: status %d\n%s", status, said.String())
		}
		ended <- said.String()
	}()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(capture); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no capture was begun")
		}
	}
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
		`{"action":"release"}`: "holds frames for this capture",
		`{"action":"drop`:      "malformed",
		`{"edit":"1=x"}`:       "malformed",
	} {
		resp, text := ask(t, base, "POST", "/api/held/decide?id=1", func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader(body)) })
		if resp.StatusCode != http.StatusBadRequest || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", body, resp.StatusCode, text)
		}
	}
	resp, text := ask(t, base, "POST", "/api/held/edit?id=1", func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader(`{"edit":"1=x"}`)) })
	if resp.StatusCode != http.StatusNotFound || !strings.Contains(text, "no longer holds the frame 1") {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
}
