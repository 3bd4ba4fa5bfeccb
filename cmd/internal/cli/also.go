package cli

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/decode"
	"unwire/decode/wire"
)

const (
	watchEvery = 300 * time.Millisecond
	maxWatched = 1 << 20 // of an answer that is looked into
	maxTold    = 64      // endpoints that are told of
)

// reverseURL reads an origin to stand in front of.
func reverseURL(flag, s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, usagef("%s wants a URL such as https://host, not %q", flag, s)
	}
	return u, nil
}

// An also is a further reverse listener.
type also struct {
	origin *url.URL
	addr   string
}

// startAlso opens a reverse listener for each further origin.
func (a *app) startAlso(rec *recorder, f captureFlags) error {
	for _, s := range f.also {
		origin, err := reverseURL("--also", s)
		if err != nil {
			return err
		}
		ln, err := listenLoopback("127.0.0.1:0")
		if err != nil {
			return err
		}
		rec.also = append(rec.also, also{origin, ln.Addr().String()})
		go func() { _ = rec.proxy.ServeReverse(ln, origin) }() // its end is that of the proxy
	}
	return nil
}

// sayAlso tells where the further listeners are.
func (a *app) sayAlso(rec *recorder, json bool) error {
	for _, l := range rec.also {
		if !json {
			a.say("http://%s stands in front of %s", l.addr, l.origin)
			continue
		}
		if err := a.printJSON(alsoEvent{1, "also", "http://" + l.addr, l.origin.String()}); err != nil {
			return err
		}
	}
	return nil
}

type alsoEvent struct {
	V      int    `json:"v"`
	Event  string `json:"event"`
	URL    string `json:"url"`
	Origin string `json:"origin"`
}

// An endpointWatch looks in a server's unary answers for servers that are not
// captured: a client that is handed one goes there, past the recording.
type endpointWatch struct {
	app   *app
	json  bool
	began time.Time

	mu    sync.Mutex
	known map[string]bool // host:port that is captured, or was told of
}

// watchEndpoints watches a reverse recording; nil for any other.
func (a *app) watchEndpoints(rec *recorder, f captureFlags) *endpointWatch {
	if f.reverse == "" {
		return nil
	}
	w := &endpointWatch{app: a, json: f.json, began: time.Now(), known: map[string]bool{rec.addr: true}}
	for _, s := range append([]string{f.reverse}, f.also...) {
		if u, err := url.Parse(s); err == nil {
			w.known[hostPort(u)] = true
		}
	}
	for _, l := range rec.also {
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
	store, err := store.Open(file)
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
			w.tell(ex, endpointsIn(f))
		}
	}
}

func (w *endpointWatch) tell(ex *captures.Exchange, endpoints []*url.URL) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, u := range endpoints {
		key := hostPort(u)
		if w.known[key] || len(w.known) >= maxTold {
			continue
		}
		w.known[key] = true
		origin := u.Scheme + "://" + u.Host
		if w.json {
			_ = w.app.printJSON(struct {
				V        int    `json:"v"`
				Event    string `json:"event"`
				URL      string `json:"url"`
				Exchange int64  `json:"exchange"`
			}{1, "uncaptured", origin, ex.ID})
			continue
		}
		w.app.say("unwire: hint: in exchange %d the server names %s, which is not captured: add --also %s", ex.ID, origin, origin)
	}
}

// endpointsIn returns the servers that a message names: strings that are a URL
// without a path, in full. A link to a page has one.
func endpointsIn(f *decode.Frame) []*url.URL {
	var out []*url.URL
	visit := func(s string) {
		if !strings.HasPrefix(s, "https://") && !strings.HasPrefix(s, "http://") {
			return
		}
		u, err := url.Parse(s)
		bare := err == nil && u.Hostname() != "" && (u.Path == "" || u.Path == "/") && u.RawQuery == "" && u.Fragment == "" && u.User == nil
		if bare && !slices.ContainsFunc(out, func(o *url.URL) bool { return o.Host == u.Host }) {
			out = append(out, u)
		}
	}
	if f.Tree != nil {
		for i := range f.Tree.Nodes {
			if n := &f.Tree.Nodes[i]; n.Type == wire.Len {
				visit(string(f.Tree.Data[n.Val:n.End]))
			}
		}
		return out
	}
	var v any
	if json.Unmarshal(f.Data, &v) == nil {
		visitStrings(v, visit)
	}
	return out
}

func visitStrings(v any, visit func(string)) {
	switch v := v.(type) {
	case string:
		visit(v)
	case []any:
		for _, e := range v {
			visitStrings(e, visit)
		}
	case map[string]any:
		for _, e := range v {
			visitStrings(e, visit)
		}
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
