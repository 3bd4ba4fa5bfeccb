package mitm

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"
)

// BenchmarkFrames measures one frame each way on a bidirectional HTTP/2 stream,
// in lock step and in bulk: straight to the server, through a tunnel that is
// not recorded, and recorded. The three take turns within one run, so that
// their ratios hold on a busy machine too.
func BenchmarkFrames(b *testing.B) {
	const rounds = 200
	origin := newTLSOrigin(b, true, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		_ = rc.Flush()
		buf := make([]byte, 4096)
		for {
			n, err := r.Body.Read(buf)
			if n > 0 {
				_, _ = w.Write(buf[:n])
				_ = rc.Flush()
			}
			if err != nil {
				return
			}
		}
	}))
	recording := newTestProxy(b, []*httptest.Server{origin}, nil)
	opaque := newTestProxy(b, []*httptest.Server{origin}, func(o *Options) { o.Skip = []string{"*"} })
	through := direct(b, origin, true)
	through.Transport.(*http.Transport).Proxy = func(*http.Request) (*url.URL, error) { return opaque.url(), nil }
	paths := []struct {
		name   string
		client *http.Client
		took   time.Duration
	}{
		{"direct", direct(b, origin, true), 0},
		{"tunnel", through, 0},
		{"recorded", recording.client(true), 0},
	}
	frame := append([]byte{0, 0, 0, 0, 91}, make([]byte, 91)...)
	pingPong := func(c *http.Client) time.Duration {
		pr, pw := io.Pipe()
		defer pw.Close()
		req, _ := http.NewRequest("POST", origin.URL, pr)
		res, err := c.Do(req)
		if err != nil {
			b.Fatal(err)
		}
		defer res.Body.Close()
		buf := make([]byte, len(frame))
		start := time.Now()
		for range rounds {
			if _, err := pw.Write(frame); err != nil {
				b.Fatal(err)
			}
			if _, err := io.ReadFull(res.Body, buf); err != nil {
				b.Fatal(err)
			}
		}
		return time.Since(start)
	}
	for i := range paths {
		pingPong(paths[i].client) // the connection is made
	}
	n := 0
	for b.Loop() {
		for i := range paths {
			paths[i].took += pingPong(paths[i].client)
		}
		n += rounds
	}
	perRound := func(i int) float64 { return float64(paths[i].took.Microseconds()) / float64(n) }
	for i, p := range paths {
		b.ReportMetric(perRound(i), p.name+"-us/round")
	}
	b.ReportMetric((perRound(2)-perRound(1))/2, "added-us/frame")
	b.ReportMetric(perRound(2)/perRound(0), "recorded/direct")
	b.ReportMetric(perRound(2)/perRound(1), "recorded/tunnel")
}

// BenchmarkDownload measures a stream of frames that come as fast as they can.
func BenchmarkDownload(b *testing.B) {
	const frames = 2000
	frame := append([]byte{0, 0, 0, 0, 91}, make([]byte, 91)...)
	origin := newTLSOrigin(b, true, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		rc := http.NewResponseController(w)
		for range frames {
			_, _ = w.Write(frame)
			_ = rc.Flush()
		}
	}))
	recording := newTestProxy(b, []*httptest.Server{origin}, nil)
	clients := []*http.Client{direct(b, origin, true), recording.client(true)}
	var took [2]time.Duration
	n := 0
	for b.Loop() {
		for i, c := range clients {
			start := time.Now()
			res, err := c.Get(origin.URL)
			if err != nil {
				b.Fatal(err)
			}
			if got, err := io.Copy(io.Discard, res.Body); got != int64(frames*len(frame)) || err != nil {
				b.Fatal(got, err)
			}
			res.Body.Close()
			took[i] += time.Since(start)
		}
		n += frames
	}
	b.ReportMetric(float64(n)/took[0].Seconds(), "direct-frames/s")
	b.ReportMetric(float64(n)/took[1].Seconds(), "recorded-frames/s")
	b.ReportMetric(took[1].Seconds()/took[0].Seconds(), "recorded/direct")
}

// BenchmarkConnect measures what a new connection costs: CONNECT, both TLS
// handshakes, one request.
func BenchmarkConnect(b *testing.B) {
	origin := newTLSOrigin(b, true, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {}))
	recording := newTestProxy(b, []*httptest.Server{origin}, nil)
	for b.Loop() {
		c := recording.client(true)
		res, err := c.Get(origin.URL)
		if err != nil {
			b.Fatal(err)
		}
		res.Body.Close()
		c.CloseIdleConnections()
	}
}
