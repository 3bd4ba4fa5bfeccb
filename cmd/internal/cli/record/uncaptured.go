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

// watchEvery is the interval at which the capture is read for new responses.
const watchEvery = 300 * time.Millisecond

// An endpointWatch searches recorded unary responses for URLs of servers that are not recorded: a client
// that gets such a URL connects there directly. It is for reverse proxies only. The methods of a nil
// endpointWatch do nothing.
type endpointWatch struct {
	// app is the running command.
	app *app.App

	// json prints findings as JSON events.
	json bool

	// began is when the recording began; older exchanges are skipped.
	began time.Time

	// endpoints finds the URLs in a response, each server once.
	endpoints *search.Endpoints
}

// watchEndpoints returns an endpointWatch for a reverse proxy (--reverse); nil in other modes.
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

// start begins to search responses while they are recorded, until stop is called or the store is closed.
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

// run searches responses until ctx is done.
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

// finish searches the responses in all files of the recording, since run may have missed the last ones
// and those in later files of a series.
func (w *endpointWatch) finish(ctx context.Context, files []string) {
	if w == nil {
		return
	}
	for _, file := range files {
		w.finishFile(ctx, file)
	}
}

// finishFile searches the responses in one capture file.
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

// look prints the servers that an exchange's response names and that are not recorded.
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
