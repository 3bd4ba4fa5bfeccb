package oracle_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"unwire/replay/probe"
	"unwire/replay/probe/oracle"
)

// What stands before a connect-es server, or in it.
func TestBehind(t *testing.T) {
	m := newSchemaMaker(4)
	m.method("Call", 24, 40, false)
	files := m.files(t)
	md := methods(files)[0].Input()
	every := func(n int64, w func(http.ResponseWriter)) func(http.Handler) http.Handler {
		return func(h http.Handler) http.Handler {
			var requests atomic.Int64
			return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				if requests.Add(1)%n == 0 {
					w(rw)
					return
				}
				h.ServeHTTP(rw, r)
			})
		}
	}
	answer := func(status int, after, body string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			if after != "" {
				w.Header().Set("Retry-After", after)
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			io.WriteString(w, body) //nolint:errcheck // the client sees it
		}
	}
	cases := []struct {
		name, options string
		around        func(http.Handler) http.Handler
		all           bool   // every field is found
		word          string // why not
	}{
		{name: "an interceptor", options: `{"auth":true}`, all: true},
		{name: "latency", all: true, around: func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				time.Sleep(rand.N(3 * time.Millisecond))
				h.ServeHTTP(w, r)
			})
		}},
		{name: "a limit that says when", all: true, around: every(5, answer(http.StatusTooManyRequests, "0", ""))},
		{name: "a code that says when", all: true, around: every(5, answer(http.StatusTooManyRequests, "0", `{"code":"resource_exhausted","message":"slowly"}`))},
		{name: "a limit", word: "429", around: every(8, answer(http.StatusTooManyRequests, "", ""))},
		{name: "a code", word: "resource_exhausted", around: every(8, answer(http.StatusTooManyRequests, "", `{"code":"resource_exhausted","message":"enough"}`))},
		{name: "a limit of an hour", word: "429", around: every(8, answer(http.StatusTooManyRequests, "3600", ""))},
		{name: "a mask", word: "so unwire reports no fields", around: func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				rec := httptest.NewRecorder()
				h.ServeHTTP(rec, r)
				answer(rec.Code, "", `{"code":"internal","message":"internal error"}`)(w)
			})
		}},
		{name: "a mask from the fifth request on", word: "contains no error of the server's", around: func(h http.Handler) http.Handler {
			var requests atomic.Int64
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if requests.Add(1) < 5 {
					h.ServeHTTP(w, r)
					return
				}
				answer(http.StatusInternalServerError, "", `{"code":"internal","message":"internal error"}`)(w)
			})
		}},
		{name: "a strict parser", options: `{"strict":true}`, all: true},
	}
	for _, version := range esVersions() {
		t.Run(string(version), func(t *testing.T) {
			t.Parallel()
			servers := map[string]*node{"": startNode(t, version, m.set())}
			for _, c := range cases {
				if servers[c.options] == nil {
					servers[c.options] = startNode(t, version, m.set(), c.options)
				}
				server := servers[c.options]
				to := server.url
				if c.around != nil {
					to = around(t, to, c.around)
				}
				res, err := oracle.Run(context.Background(), probe.Options{To: to, Method: call, Type: true, Names: append(requestNames(md), "none_of_it"), Known: knownName(md), Numbers: []probe.Range{{First: 1, Last: 60}}})
				if err != nil {
					t.Fatal(err)
				}
				v := compareAll(t, res, md)
				checkNames(t, res, md)
				said := res.Stopped + fmt.Sprint(res.Notes)
				if c.all && (v.found != v.fields || res.Stopped != "") || !c.all && v.found == v.fields || !strings.Contains(said, c.word) {
					t.Errorf("%s: %+v: %s", c.name, v, said)
				}
				if n := server.executed(t); res.Executed != 0 || n != 0 {
					t.Errorf("%s: %d executed, %d ran", c.name, res.Executed, n)
				}
			}
		})
	}
}
