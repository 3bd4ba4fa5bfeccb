package record

import (
	"context"
	"sync"
	"time"

	"unwire/captures"
	"unwire/captures/safetext"
	"unwire/captures/store"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/decode/search"
	"unwire/proto"
)

const watchEvery = 300 * time.Millisecond

// An endpointWatch looks in a server's unary answers for servers that are not
// captured: a client that is handed one goes there, past the recording.
type endpointWatch struct {
	app   *app.App
	json  bool
	began time.Time

	endpoints *search.Endpoints
}

// watchEndpoints watches a reverse recording; nil for any other.
func watchEndpoints(a *app.App, rec *Recorder, f CaptureFlags) *endpointWatch {
	if f.reverse == "" {
		return nil
	}
	captured := append([]string{"http://" + rec.Addr, f.reverse}, f.also...)
	for _, l := range rec.reverse {
		captured = append(captured, "http://"+l.addr)
	}
	return &endpointWatch{app: a, json: f.json, began: time.Now(), endpoints: search.NewEndpoints(captured...)}
}

// start watches responses for the endpoints that they name, and reports those, until stop is called or
// the store is closed.
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

// look reports the server endpoints that an exchange's response names.
func (w *endpointWatch) look(ctx context.Context, store *store.Store, ex *captures.Exchange) {
	if ex.Started.Before(w.began) {
		return
	}
	for _, u := range w.endpoints.In(ctx, store, ex) {
		origin := u.Scheme + "://" + u.Host
		if w.json {
			_ = w.app.Print(&contract.Uncaptured{Event: "uncaptured", URL: origin, Exchange: ex.ID})
			continue
		}
		w.app.Say("unwire: hint: the response of exchange %d refers the client to %s, whose traffic is not recorded: add --also %s", ex.ID, safetext.Line(origin), safetext.ShellFile(origin))
	}
}
