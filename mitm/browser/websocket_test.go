package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	coder "github.com/coder/websocket"

	"unwire/captures/need"
	"unwire/mitm/rules"
)

// talkingPage sends messages through a WebSocket, and beats while it waits for the answers, which it reports with
// the milliseconds since it sent them all.
const talkingPage = `<!doctype html><link rel=icon href=data:,><title>test</title><script>
const got = [], ws = new WebSocket(location.origin.replace('http', 'ws') + '/ws')
let sent
ws.binaryType = 'arraybuffer'
ws.onopen = () => {
  sent = performance.now()
  ws.send(JSON.stringify({name: 'edit me', rest: 'x'.repeat(20000)}))
  ws.send('drop me up')
  ws.send('drop me down')
  ws.send(new Uint8Array([10, 3, 111, 108, 100, 16, 7]))
  ws.send('late')
  ws.send('hold me')
  ws.send('bye')
  setInterval(() => ws.send('beat'), 20)
}
ws.onmessage = async (m) => {
  const text = typeof m.data === 'string' ? m.data : [...new Uint8Array(m.data)].join()
  got.push([text.slice(0, 40) + text.length, Math.round(performance.now() - sent)])
  if (text === 'bye') await fetch('/done', {method: 'POST', body: JSON.stringify([ws.extensions, got])})
}
</script>`

// talkingRules edit, drop, delay and hold messages of talkingPage.
const talkingRules = `rules:
  - {name: edit text, match: 'protocol:websocket dir:up text:"edit me"', set: name=a longer name}
  - {name: drop up, match: 'protocol:websocket dir:up text:"drop me up"', drop: true}
  - {name: drop down, match: 'protocol:websocket dir:down text:"drop me down"', drop: true}
  - {name: edit binary, match: 'protocol:websocket dir:down path:1=old', set: 1=newer}
  - {name: late, match: 'protocol:websocket dir:down text:late', delay: 400ms}
  - {name: held, match: 'protocol:websocket dir:down text:"hold me"', hold: true}
`

// TestRulesOfWebSocket: Chromium's WebSocket with messages that rules edit, drop, delay and hold, compressed and not.
// Messages of the other direction pass while one is held.
func TestRulesOfWebSocket(t *testing.T) {
	need.Program(t, "chromium", "chromium", "--version")
	need.Program(t, "certutil", "libnss3-tools")
	for name, c := range map[string]struct {
		mode       coder.CompressionMode
		extensions string
	}{
		"plain":   {coder.CompressionDisabled, ""},
		"deflate": {coder.CompressionContextTakeover, "permessage-deflate"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			beats, done := make(chan string, 1000), make(chan []byte, 1)
			mux := http.NewServeMux()
			mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/html")
				_, _ = io.WriteString(w, talkingPage)
			})
			mux.HandleFunc("/ws", func(w http.ResponseWriter, r *http.Request) {
				c, err := coder.Accept(w, r, &coder.AcceptOptions{CompressionMode: c.mode, CompressionThreshold: 1})
				if err != nil {
					t.Error(err)
					return
				}
				c.SetReadLimit(1 << 20)
				for {
					kind, p, err := c.Read(r.Context())
					switch {
					case err != nil:
						return
					case string(p) == "beat":
						beats <- "beat"
					default:
						_ = c.Write(r.Context(), kind, p)
					}
				}
			})
			mux.HandleFunc("POST /done", func(_ http.ResponseWriter, r *http.Request) {
				b, _ := io.ReadAll(r.Body)
				done <- b
			})
			origin := httptest.NewUnstartedServer(mux)
			origin.StartTLS()
			defer origin.Close()
			hold := func(ctx context.Context, h rules.Held) ([][]byte, bool) {
				// Beats that were sent before have arrived, too.
				for len(beats) > 0 {
					<-beats
				}
				for range 10 {
					select {
					case <-beats:
					case <-ctx.Done():
						return nil, false
					}
				}
				return [][]byte{append(slices.Clone(h.Data), " no more"...)}, true
			}
			x := startProxy(t, origin, talkingRules, rules.Options{Hold: hold, Report: func(text string) { t.Error(text) }})
			defer x.store.Close() //nolint:errcheck // its content is not used
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, ended, out := x.startBrowser(ctx, origin.URL+"/", false)
			defer x.browser.Close() //nolint:errcheck // the profile is temporary
			var report []byte
			select {
			case report = <-done:
			case err := <-ended:
				t.Fatalf("the browser ended: %v\n%s", err, out.String())
			case <-ctx.Done():
				t.Fatal("the page reports nothing")
			}
			cancel()
			<-ended
			var extensions string
			var got [][2]any
			check(t, json.Unmarshal(report, &[]any{&extensions, &got}))
			var texts []string
			waits := map[string]float64{}
			for _, m := range got {
				text := fmt.Sprint(m[0])
				texts, waits[text] = append(texts, text), m[1].(float64)
			}
			want := []string{`{"name":"a longer name","rest":"xxxxxxxx20034`, "10,5,110,101,119,101,114,16,729", "late4", "hold me no more15", "bye3"}
			if !slices.Equal(texts, want) || extensions != c.extensions {
				t.Errorf("the page got %q with %q, want %q", texts, extensions, want)
			}
			// The held message waited for ten beats, which may have been on their way before.
			if waits["late4"] < 390 {
				t.Errorf("%v", waits)
			}
		})
	}
}
