package mitm

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// BenchmarkUnaryH1 measures small calls over HTTP/1, 8 at once on as many connections:
// straight, through the least that ends TLS on both sides, recorded, and through the
// proxy without a recorder. They take turns within one run. It reports the processor
// time of each, and how much more recording takes than the least; "net" is without what
// client and server take themselves.
func BenchmarkUnaryH1(b *testing.B) {
	const atOnce, calls = 8, 800
	body := strings.Repeat("x", 100)
	benchH1(b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }), calls, "us/call", func(c *http.Client, base string) {
		var left atomic.Int64
		left.Store(calls)
		var wg sync.WaitGroup
		for range atOnce {
			wg.Go(func() {
				for left.Add(-1) >= 0 {
					res, err := c.Post(base, "application/proto", strings.NewReader(body))
					if err != nil {
						b.Error(err)
						return
					}
					_, _ = io.Copy(io.Discard, res.Body)
					res.Body.Close()
				}
			})
		}
		wg.Wait()
	})
}

// BenchmarkBodyH1 measures 16 MB down over HTTP/1, of zeros.
func BenchmarkBodyH1(b *testing.B) {
	const size = 16
	benchH1(b, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.CopyN(w, repeat(make([]byte, 1<<20)), size<<20)
	}), size, "us/MB", func(c *http.Client, base string) { download(b, c, base, size<<20) })
}

// BenchmarkNoiseH1 is BenchmarkBodyH1 for a body that neither repeats nor compresses.
func BenchmarkNoiseH1(b *testing.B) {
	const size = 16
	next := newNoise(size << 20)
	benchH1(b, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(next())
	}), size, "us/MB", func(c *http.Client, base string) { download(b, c, base, size<<20) })
}

func benchH1(b *testing.B, h http.Handler, each float64, unit string, round func(c *http.Client, base string)) {
	s := newTLSOrigin(b, false, h)
	recording := newTestProxy(b, []*httptest.Server{s}, nil)
	unrecorded := newTestProxy(b, []*httptest.Server{s}, func(o *Options) { o.Store = brokenRecorder{} })
	relay := func(keep io.Writer) *http.Client {
		return newClient(b, false, recording.roots(), http.ProxyURL(&url.URL{Scheme: "http", Host: newTLSRelay(b, s, recording.ca, protoH1, keep)}))
	}
	paths := []*benchPath{
		{name: "direct", client: direct(b, s, false)},
		{name: "tls-relay", client: relay(nil)},
		{name: "recorded", client: recording.client(false), commit: commits(b, recording)},
		{name: "unrecorded", client: unrecorded.client(false)},
		{name: "keeping-relay", client: relay(newKeptFile(b))},
	}
	for _, p := range paths {
		p.client.Transport.(*http.Transport).MaxIdleConnsPerHost = 64
		round(p.client, s.URL)
	}
	for b.Loop() {
		for _, p := range paths {
			start := processorTime()
			round(p.client, s.URL)
			p.end(start)
		}
	}
	for _, p := range paths {
		b.ReportMetric(float64(p.median().Microseconds())/each, p.name+"-"+unit)
	}
	net := func(p *benchPath) float64 {
		return (p.median() - paths[0].median()).Seconds() / (paths[1].median() - paths[0].median()).Seconds()
	}
	for _, p := range paths[2:] {
		b.ReportMetric(p.times(paths[1]), p.name+"/tls-relay")
	}
	for _, p := range paths[2:4] {
		b.ReportMetric(net(p), p.name+"/tls-relay-net")
	}
}
