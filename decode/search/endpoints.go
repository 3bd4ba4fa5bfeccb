package search

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"unwire/captures"
	"unwire/decode"
)

const (
	// maxSearched bounds the bytes of an answer that is searched for servers.
	maxSearched = 1 << 20
	// maxEndpoints bounds the servers that are known.
	maxEndpoints = 64
)

// Endpoints finds the servers that unary answers name and that are not known yet: a
// client that is handed one goes there. It is for any number of goroutines.
type Endpoints struct {
	mu    sync.Mutex
	known map[string]bool // by host:port
}

// NewEndpoints returns an Endpoints that knows the servers of URLs; text that is no URL
// is skipped.
func NewEndpoints(known ...string) *Endpoints {
	e := &Endpoints{known: map[string]bool{}}
	for _, s := range known {
		if u, err := url.Parse(s); err == nil {
			e.known[hostPort(u)] = true
		}
	}
	return e
}

// In returns the servers that the answer of an exchange names and that were not known,
// which they are from then on.
//
// Limits: 64 servers; 1 MiB of a frame.
// Errors: none; what cannot be read names no server.
func (e *Endpoints) In(ctx context.Context, src captures.Source, ex *captures.Exchange) (found []*url.URL) {
	if ex.Status != http.StatusOK || decode.Classify(ex).Protocol != decode.ConnectUnary {
		return nil
	}
	d, err := decode.Decode(ctx, src, ex.ID, decode.Options{})
	if err != nil {
		return nil
	}
	for i := range d.Frames {
		if f := &d.Frames[i]; f.Dir == captures.Down && len(f.Data) <= maxSearched {
			found = append(found, e.addNew(origins(f))...)
		}
	}
	return found
}

// addNew returns those of urls whose servers were not known, and adds them.
func (e *Endpoints) addNew(urls []*url.URL) (added []*url.URL) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, u := range urls {
		key := hostPort(u)
		if e.known[key] || len(e.known) >= maxEndpoints {
			continue
		}
		e.known[key] = true
		added = append(added, u)
	}
	return added
}

// hostPort is where a URL's server is.
func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[bool]string{true: "443", false: "80"}[u.Scheme == "https"]
	}
	return strings.ToLower(u.Hostname()) + ":" + port
}
