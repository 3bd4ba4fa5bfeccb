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
	// maxSearched is the maximum size in bytes of a frame that is searched for servers.
	maxSearched = 1 << 20

	// maxEndpoints is the maximum number of servers that Endpoints records.
	maxEndpoints = 64
)

// Endpoints finds URLs of new servers in unary responses. A client that learns of a server from a response will
// connect to it. Endpoints may be used by several goroutines.
type Endpoints struct {
	// mu guards the fields below it.
	mu sync.Mutex

	// known has the servers seen so far, as host:port.
	known map[string]bool
}

// NewEndpoints returns an Endpoints that already knows the servers of the given URLs. Malformed URLs are ignored.
func NewEndpoints(known ...string) *Endpoints {
	e := &Endpoints{known: map[string]bool{}}
	for _, s := range known {
		if u, err := url.Parse(s); err == nil {
			e.known[hostPort(u)] = true
		}
	}
	return e
}

// In returns the new servers that the response of an exchange mentions, and records them.
//
// Limits: 64 servers in total, and frames of up to 1 MiB.
//
// Errors: none. A response that cannot be decoded mentions no server.
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

// addNew records the servers of urls, and returns those URLs whose servers are new.
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

// hostPort returns the host and the port of a URL's server.
func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[bool]string{true: "443", false: "80"}[u.Scheme == "https"]
	}
	return strings.ToLower(u.Hostname()) + ":" + port
}
