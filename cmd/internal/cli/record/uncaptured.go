package record

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/decode"
	"unwire/decode/search"
	"unwire/proto"
)

const (
	watchEvery = 300 * time.Millisecond
	// maxWatched bounds the bytes of an answer that is looked into.
	maxWatched = 1 << 20
	// maxEndpoints bounds the endpoints that are known.
	maxEndpoints = 64
)

// An endpointWatch looks in a server's unary answers for servers that are not
// captured: a client that is handed one goes there, past the recording.
type endpointWatch struct {
	app   *app.App
	json  bool
	began time.Time

	mu    sync.Mutex
	known map[string]bool // host:port that is captured, or was told of
}

// watchEndpoints watches a reverse recording; nil for any other.
func watchEndpoints(a *app.App, rec *Recorder, f CaptureFlags) *endpointWatch {
	if f.reverse == "" {
		return nil
	}
	w := &endpointWatch{app: a, json: f.json, began: time.Now(), known: map[string]bool{rec.Addr: true}}
	for _, s := range append([]string{f.reverse}, f.also...) {
		if u, err := url.Parse(s); err == nil {
			w.known[hostPort(u)] = true
		}
	}
	for _, l := range rec.reverse {
		w.known[l.addr] = true
	}
	return w
}

// start tells of endpoints as they are named, until it is stopped or store is closed.
func (w *endpointWatch) start(ctx context.Context, store *store.Store) (stop func()) {
	if w == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { w.run(ctx, store) })
	return func() {
		cancel()
		running.Wait()
	}
}

func (w *endpointWatch) run(ctx context.Context, store *store.Store) {
	for ev, err := range store.Follow(ctx, watchEvery) {
		if err != nil {
			return // finish looks again
		}
		if ev.Exchange != nil && ev.Exchange.Ended() {
			w.look(ctx, store, ev.Exchange)
		}
	}
}

// finish looks at what ended last, and at the files that were begun meanwhile.
func (w *endpointWatch) finish(ctx context.Context, files []string) {
	if w == nil {
		return
	}
	for _, file := range files {
		w.finishFile(ctx, file)
	}
}

func (w *endpointWatch) finishFile(ctx context.Context, file string) {
	store, err := store.Open(file, store.ReadOptions{Profile: proto.Profile()})
	if err != nil {
		return // captureSummary says so
	}
	defer store.Close()
	for ex, err := range store.Exchanges(ctx) {
		if err != nil {
			return
		}
		w.look(ctx, store, ex)
	}
}

func (w *endpointWatch) look(ctx context.Context, store *store.Store, ex *captures.Exchange) {
	if ex.Started.Before(w.began) || ex.Status != http.StatusOK || decode.Classify(ex).Protocol != decode.ConnectUnary {
		return
	}
	d, err := decode.Decode(ctx, store, ex.ID, decode.Options{})
	if err != nil {
		return
	}
	for i := range d.Frames {
		if f := &d.Frames[i]; f.Dir == captures.Down && len(f.Data) <= maxWatched {
			w.report(ex, search.Origins(f))
		}
	}
}

func (w *endpointWatch) report(ex *captures.Exchange, endpoints []*url.URL) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, u := range endpoints {
		key := hostPort(u)
		if w.known[key] || len(w.known) >= maxEndpoints {
			continue
		}
		w.known[key] = true
		origin := u.Scheme + "://" + u.Host
		if w.json {
			_ = w.app.Print(&contract.Uncaptured{Event: "uncaptured", URL: origin, Exchange: ex.ID})
			continue
		}
		w.app.Say("unwire: hint: in exchange %d the server names %s, which is not captured: add --also %s", ex.ID, origin, origin)
	}
}

// hostPort is where a URL's server is.
func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[bool]string{true: "443", false: "80"}[u.Scheme == "https"]
	}
	return strings.ToLower(u.Hostname()) + ":" + port
}
