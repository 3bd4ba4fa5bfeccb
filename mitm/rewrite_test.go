package mitm

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"unwire/captures"
	"unwire/decode/envelope"
	"unwire/mitm/rewrite"
)

// A testPolicy changes every exchange by a function of the test.
type testPolicy struct {
	frame   func(ctx context.Context, f *rewrite.Frame) rewrite.Verdict
	request func() rewrite.Verdict

	mu     sync.Mutex
	passed []string
}

func (p *testPolicy) Begin(_ *captures.Exchange, q rewrite.Request) rewrite.Exchange {
	return &testExchange{policy: p, request: q}
}
func (p *testPolicy) Maps() bool { return false }

func (p *testPolicy) Server(string, string) string { return "" }

type testExchange struct {
	policy   *testPolicy
	request  rewrite.Request
	response captures.Headers
}

func (x *testExchange) Changes(captures.Direction) bool { return true }
func (x *testExchange) Diverts(captures.Direction) bool { return true }
func (x *testExchange) Request() rewrite.Verdict {
	if x.policy.request != nil {
		return x.policy.request()
	}
	return rewrite.Verdict{}
}

func (x *testExchange) Response(_ int, h captures.Headers) {
	x.response = h
}

func (x *testExchange) Framing(d captures.Direction) rewrite.Framing {
	h := x.request.Header
	if d == captures.Down {
		h = x.response
	}
	if strings.HasPrefix(h.Get("content-type"), "application/connect+") {
		return rewrite.Framing{Kind: rewrite.Envelopes, Encoding: h.Get("connect-content-encoding")}
	}
	return rewrite.Framing{Kind: rewrite.Whole, Encoding: h.Get("content-encoding")}
}

func (x *testExchange) Frame(ctx context.Context, f *rewrite.Frame) rewrite.Verdict {
	if x.policy.frame == nil {
		return rewrite.Verdict{}
	}
	return x.policy.frame(ctx, f)
}

func (x *testExchange) Passes(*rewrite.Frame) bool { return x.policy.frame == nil }

func (*testExchange) ClientLeft()                                                     {}
func (*testExchange) PassesEnvelopes(captures.Direction, []byte) (passed, frames int) { return 0, 0 }

func (x *testExchange) PassesMessage(captures.Direction, envelope.Flags, []byte) bool {
	return false
}
func (x *testExchange) Paces() bool                                   { return false }
func (x *testExchange) Recorded(int64)                                {}
func (x *testExchange) Pace(context.Context, captures.Direction, int) {}
func (x *testExchange) Passed(_ captures.Direction, reason string) {
	x.policy.mu.Lock()
	defer x.policy.mu.Unlock()
	x.policy.passed = append(x.policy.passed, reason)
}
func (x *testExchange) End() {}

// echoBody answers with the request's body as it arrives, with a trailer.
func echoBody(w http.ResponseWriter, r *http.Request) {
	// HTTP/2 has no need of it.
	_ = http.NewResponseController(w).EnableFullDuplex()
	if v := r.Header.Get("Content-Type"); v != "" {
		w.Header().Set("Content-Type", v)
	}
	w.Header().Set("Trailer", "X-End")
	w.WriteHeader(http.StatusOK)
	flush := w.(http.Flusher)
	flush.Flush()
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Body.Read(buf)
		if n > 0 {
			_, _ = w.Write(buf[:n])
			flush.Flush()
		}
		if err != nil {
			break
		}
	}
	w.Header().Set("X-End", "over")
}

// TestRewriteGrowsAndShrinks: frames grow by 10 MiB and shrink to nothing through windows of 64 KiB.
func TestRewriteGrowsAndShrinks(t *testing.T) {
	for _, h2 := range []bool{true, false} {
		t.Run(map[bool]string{true: "h2", false: "h1"}[h2], func(t *testing.T) {
			big := bytes.Repeat([]byte("0123456789abcdef"), 10<<16)
			policy := &testPolicy{frame: func(_ context.Context, f *rewrite.Frame) rewrite.Verdict {
				switch {
				case f.Dir == captures.Up && string(f.Data) == "grow":
					return rewrite.Verdict{Action: rewrite.Replace, Rule: "grow", Messages: [][]byte{big}}
				case f.Dir == captures.Down && bytes.Equal(f.Data, big):
					return rewrite.Verdict{Action: rewrite.Replace, Rule: "shrink", Messages: [][]byte{{}}}
				}
				return rewrite.Verdict{}
			}}
			origin := newTLSOrigin(t, h2, http.HandlerFunc(echoBody))
			proxy := newTestProxy(t, []*httptest.Server{origin}, func(o *Options) { o.Rewrite = policy })
			for _, contentType := range []string{"application/connect+proto", "application/proto"} {
				var sent, want []byte
				if contentType == "application/proto" {
					sent = []byte("grow")
				} else {
					for i := range 5 {
						sent = envelope.Append(sent, 0, []byte{byte(i)})
						sent = envelope.Append(sent, 0, []byte("grow"))
						want = envelope.Append(envelope.Append(want, 0, []byte{byte(i)}), 0, nil)
					}
				}
				r, _ := http.NewRequest(http.MethodPost, origin.URL+"/a.S/M", bytes.NewReader(sent))
				r.Header.Set("Content-Type", contentType)
				ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
				defer cancel()
				res, err := proxy.client(h2).Do(r.WithContext(ctx))
				if err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(res.Body)
				if err != nil || !bytes.Equal(got, want) || res.Trailer.Get("X-End") != "over" {
					t.Errorf("%s: got %d bytes, %v, trailers %v; want %d", contentType, len(got), err, res.Trailer, len(want))
				}
			}
		})
	}
}
