package oracle_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"unwire/replay/outbound"
	"unwire/replay/probe"
	"unwire/replay/probe/oracle"
)

// around starts a proxy before a server.
func around(t testing.TB, target *url.URL, wrap func(http.Handler) http.Handler) *url.URL {
	t.Helper()
	s := httptest.NewServer(wrap(httputil.NewSingleHostReverseProxy(target)))
	t.Cleanup(s.Close)
	return parseURL(t, s.URL)
}

func oneMethod(seed uint64) *schemaMaker {
	m := newSchemaMaker(seed)
	m.method("Call", 41, 500, false)
	return m
}

const call = "/probe.v1.Service/Call"

func TestAProxyThatHidesTheTextsTurnsTheOracleOff(t *testing.T) {
	files := oneMethod(1).files(t)
	server := startConnect(t, files, nil)
	proxy := around(t, server.url, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, r)
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(rec.Code)
			io.WriteString(w, `{"code":"invalid_argument","message":"bad request"}`) //nolint:errcheck // the client sees it
		})
	})
	res, err := oracle.Run(context.Background(), probe.Options{To: proxy, Method: call, Names: []string{"a"}})
	if err != nil {
		t.Fatal(err)
	}
	if res.Runtime != probe.Unknown || len(res.Fields) != 0 || !strings.Contains(fmt.Sprint(res.Notes), "do not contain the error messages of its parser") || res.Executed != 0 {
		t.Errorf("%+v", res)
	}
}

func TestItStopsWhereTheServerWantsIt(t *testing.T) {
	for _, c := range []struct {
		name, body, retry string
		status            int
		why               string
	}{
		{"429", "", "", http.StatusTooManyRequests, "HTTP 429"},
		{"exhausted", `{"code":"resource_exhausted","message":"enough"}`, "", 429, "resource_exhausted"},
		{"denied", `{"code":"permission_denied","message":"no"}`, "", 403, "permission_denied"},
		{"unauthenticated", `{"code":"unauthenticated","message":"who"}`, "", 401, "unauthenticated"},
		{"later", "", "3600", http.StatusTooManyRequests, "the server asked to wait 1h0m0s, until 2"},
		{"later, unavailable", "", "3600", http.StatusServiceUnavailable, "the server asked to wait 1h0m0s, until 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var requests atomic.Int64
			server := startConnect(t, oneMethod(1).files(t), func(h http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if requests.Add(1) <= 20 {
						h.ServeHTTP(w, r)
						return
					}
					if c.retry != "" {
						w.Header().Set("Retry-After", c.retry)
					}
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(c.status)
					io.WriteString(w, c.body) //nolint:errcheck // the client sees it
				})
			})
			res, err := oracle.Run(context.Background(), probe.Options{To: server.url, Method: call})
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(res.Stopped, c.why) || requests.Load() != 21 || res.Requests != 21 {
				t.Errorf("%d requests: %+v", requests.Load(), res)
			}
		})
	}
}

func TestRetryAfterIsWaitedFor(t *testing.T) {
	var requests atomic.Int64
	files := oneMethod(1).files(t)
	server := startConnect(t, files, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if requests.Add(1)%40 == 39 {
				w.Header().Set("Retry-After", "0")
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
			h.ServeHTTP(w, r)
		})
	})
	res, err := oracle.Run(context.Background(), probe.Options{To: server.url, Method: call})
	if err != nil {
		t.Fatal(err)
	}
	plain, err := oracle.Run(context.Background(), probe.Options{To: startConnect(t, files, nil).url, Method: call})
	if err != nil {
		t.Fatal(err)
	}
	if res.Stopped != "" || len(res.Fields) != len(plain.Fields) || res.Requests <= plain.Requests {
		t.Errorf("%d fields in %d requests, without a limit %d in %d: %s", len(res.Fields), res.Requests, len(plain.Fields), plain.Requests, res.Stopped)
	}
}

// A Retry-After in the past is not a reason to repeat a request at once, again and again.
func TestRetryAfterInThePastBacksOff(t *testing.T) {
	var refused []time.Time
	server := startConnect(t, oneMethod(1).files(t), func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			refused = append(refused, time.Now()) // one request at a time
			w.Header().Set("Retry-After", "Wed, 21 Oct 2015 07:28:00 GMT")
			w.WriteHeader(http.StatusTooManyRequests)
		})
	})
	res, err := oracle.Run(t.Context(), probe.Options{To: server.url, Method: call})
	if err != nil || !strings.Contains(res.Stopped, "also after 5 repetitions") || len(refused) != 6 {
		t.Fatalf("%d requests: %s %v", len(refused), res.Stopped, err)
	}
	for i := 2; i < len(refused); i++ {
		if pause, least := refused[i].Sub(refused[i-1]), 200*time.Millisecond<<(i-2); pause < least {
			t.Errorf("repetition %d after %s, want %s or more", i, pause, least)
		}
	}
}

// Answers that come late, each after another time, change nothing.
func TestLatencyChangesNothing(t *testing.T) {
	m := oneMethod(1)
	files := m.files(t)
	slow := startConnect(t, files, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(rand.N(3 * time.Millisecond))
			h.ServeHTTP(w, r)
		})
	})
	res, err := oracle.Run(context.Background(), probe.Options{To: slow.url, Method: call})
	if err != nil {
		t.Fatal(err)
	}
	if v := compare(t, res, "", methods(files)[0].Input()); res.Stopped != "" || v.found == 0 || slow.executed.Load() != 0 {
		t.Errorf("%+v %+v", v, res)
	}
}

// In a unary call the parser comes before an interceptor that asks who is there.
func TestTheParserComesBeforeTheInterceptor(t *testing.T) {
	files := oneMethod(1).files(t)
	server := startConnect(t, files, nil, authenticated())
	res, err := oracle.Run(context.Background(), probe.Options{To: server.url, Method: call})
	if err != nil {
		t.Fatal(err)
	}
	if v := compare(t, res, "", methods(files)[0].Input()); res.Stopped != "" || v.found < 10 || res.Executed != 0 || server.executed.Load() != 0 {
		t.Errorf("%+v %+v", v, res)
	}
}

func TestAnotherHostIsRefused(t *testing.T) {
	for _, o := range []probe.Options{
		{To: parseURL(t, "http://192.0.2.1"), Method: call},
		{To: parseURL(t, "https://example.com"), Method: call, Reach: outbound.Policy{Live: true, AllowHosts: []string{"example.org"}}},
	} {
		if _, err := oracle.Run(context.Background(), o); !errors.Is(err, outbound.ErrRefused) {
			t.Errorf("%s: %v", o.To, err)
		}
	}
}

func TestBudget(t *testing.T) {
	server := startConnect(t, oneMethod(1).files(t), nil)
	res, err := oracle.Run(context.Background(), probe.Options{To: server.url, Method: call, Budget: 7})
	if err != nil || res.Requests != 7 || !strings.Contains(res.Stopped, "limit of 7") {
		t.Errorf("%v: %+v", err, res)
	}
}

// A probe goes on with the journal of one that was cut off, even in the middle
// of a line, and asks nothing twice.
func TestResume(t *testing.T) {
	var requests atomic.Int64
	m := oneMethod(1)
	server := startConnect(t, m.files(t), func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requests.Add(1)
			h.ServeHTTP(w, r)
		})
	})
	whole, err := oracle.Run(context.Background(), probe.Options{To: server.url, Method: call})
	if err != nil {
		t.Fatal(err)
	}
	all := requests.Swap(0)

	path := filepath.Join(t.TempDir(), "journal")
	run := func(budget int) *probe.Result {
		t.Helper()
		j, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close() //nolint:errcheck // it is read again below
		res, err := oracle.Run(context.Background(), probe.Options{
			To: server.url, Method: call, Budget: budget, Journal: j,
			Header: []probe.HeaderField{{Name: "authorization", Value: "Bearer hidden", Secret: true}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	run(100)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(data, `{"v":1,"event":"answ`...), 0o600); err != nil {
		t.Fatal(err)
	}
	res := run(2000)
	if res.Resumed != 100 || requests.Load() != all || fmt.Sprint(res.Fields) != fmt.Sprint(whole.Fields) {
		t.Errorf("%d resumed, %d requests, %d without a break", res.Resumed, requests.Load(), all)
	}
	if data, err = os.ReadFile(path); err != nil || bytes.Contains(data, []byte("hidden")) {
		t.Errorf("%v; the journal has the secret: %v", err, bytes.Contains(data, []byte("hidden")))
	}
	if lines := bytes.Count(data, []byte("\n")); lines != 2*int(all) {
		t.Errorf("%d lines of %d requests", lines, all)
	}
}
