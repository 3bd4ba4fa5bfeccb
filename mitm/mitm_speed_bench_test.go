package mitm

import (
	"crypto/tls"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A benchPath is one way to a server that a benchmark compares.
type benchPath struct {
	name   string
	client *http.Client
	took   time.Duration

	// processor is the processor time of the whole process in each round: with client,
	// server and proxy, and until all is committed.
	processor []time.Duration

	// commit, if set, returns when all is.
	commit func()
}

// end ends a round that began at a processor time.
func (p *benchPath) end(used time.Duration) {
	if p.commit != nil {
		p.commit() // what is left would count for the next path
	}
	p.processor = append(p.processor, processorTime()-used)
}

// times is the median, over all rounds, of the processor time of p as a multiple of that
// of another path in the same round: a machine that other programs use disturbs single
// rounds a lot.
func (p *benchPath) times(other *benchPath) float64 {
	ratios := make([]float64, len(p.processor))
	for i := range ratios {
		ratios[i] = p.processor[i].Seconds() / other.processor[i].Seconds()
	}
	slices.Sort(ratios)
	return ratios[len(ratios)/2]
}

// median is the median of the processor times of all rounds.
func (p *benchPath) median() time.Duration {
	return slices.Sorted(slices.Values(p.processor))[len(p.processor)/2]
}

// commits returns what waits until a proxy has committed what it recorded.
func commits(b *testing.B, p *testProxy) func() {
	return func() {
		if err := p.store.Flush(b.Context()); err != nil {
			b.Error(err)
		}
	}
}

// benchPaths are straight, through an opaque tunnel, and recorded; and to tell
// what that is made of, through the least that ends TLS on both sides, and
// through the proxy without a recorder. They take turns within one run, so that
// their ratios hold on a busy machine too.
func benchPaths(b *testing.B, h http.Handler) (string, []*benchPath) {
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	s.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 10_000}
	s.TLS = &tls.Config{}
	s.StartTLS()
	b.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	recording := newTestProxy(b, []*httptest.Server{s}, nil)
	unrecorded := newTestProxy(b, []*httptest.Server{s}, func(o *Options) { o.Store = brokenRecorder{} })
	opaque := newTestProxy(b, []*httptest.Server{s}, func(o *Options) { o.Skip = []string{"*"} })
	tunnel := direct(b, s, true)
	tunnel.Transport.(*http.Transport).Proxy = func(*http.Request) (*url.URL, error) { return opaque.url(), nil }
	relay := func(keep io.Writer) *http.Client {
		return newClient(b, true, recording.roots(), http.ProxyURL(&url.URL{Scheme: "http", Host: newTLSRelay(b, s, recording.ca, protoH2, keep)}))
	}
	return s.URL, []*benchPath{
		{name: "direct", client: direct(b, s, true)},
		{name: "tunnel", client: tunnel},
		{name: "recorded", client: recording.client(true), commit: commits(b, recording)},
		{name: "tls-relay", client: relay(nil)},
		{name: "unrecorded", client: unrecorded.client(true)},
		{name: "keeping-relay", client: relay(newKeptFile(b))},
	}
}

func reportPaths(b *testing.B, paths []*benchPath, n float64, unit string) {
	for _, p := range paths {
		b.ReportMetric(n/p.took.Seconds(), p.name+"-"+unit)
	}
	b.ReportMetric(100*paths[1].took.Seconds()/paths[2].took.Seconds(), "%-of-tunnel")
	b.ReportMetric(100*paths[3].took.Seconds()/paths[2].took.Seconds(), "%-of-tls-relay")
	b.ReportMetric(100*paths[1].took.Seconds()/paths[4].took.Seconds(), "unrecorded-%-of-tunnel")
	b.ReportMetric(100*paths[0].took.Seconds()/paths[2].took.Seconds(), "%-of-direct")
}

// BenchmarkUnary measures small calls, 32 at once on one HTTP/2 connection.
func BenchmarkUnary(b *testing.B) {
	const atOnce, calls = 32, 640
	base, paths := benchPaths(b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }))
	body := strings.Repeat("x", 100)
	round := func(c *http.Client) {
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
	}
	measure(b, paths, calls, "calls/s", round)
}

// BenchmarkLargeBody measures 16 MB down, of zeros.
func BenchmarkLargeBody(b *testing.B) {
	const size = 16
	base, paths := benchPaths(b, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.CopyN(w, repeat(make([]byte, 1<<20)), size<<20)
	}))
	measure(b, paths, size, "MB/s", func(c *http.Client) { download(b, c, base, size<<20) })
}

// BenchmarkLargeNoise is BenchmarkLargeBody for a body that neither repeats nor compresses.
func BenchmarkLargeNoise(b *testing.B) {
	const size = 16
	next := newNoise(size << 20)
	base, paths := benchPaths(b, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(next()) }))
	measure(b, paths, size, "MB/s", func(c *http.Client) { download(b, c, base, size<<20) })
}

func download(b *testing.B, c *http.Client, from string, size int64) {
	res, err := c.Get(from)
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	if n, err := io.Copy(io.Discard, res.Body); n != size || err != nil {
		b.Fatal(n, err)
	}
}

// newNoise returns bodies of n bytes that do not compress, no two of which have a part in
// common at the same place.
func newNoise(n int) func() []byte {
	noise := make([]byte, n+1<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise)
	var calls atomic.Int64
	return func() []byte {
		at := int(calls.Add(1)) * 997 % (1 << 20)
		return noise[at : at+n]
	}
}

// BenchmarkStreams opens 5,000 bidirectional streams, all there at once, and
// sends a frame each way on each.
func BenchmarkStreams(b *testing.B) {
	const streams = 5000
	base, paths := benchPaths(b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		flush(w)
		_, _ = io.CopyN(w, r.Body, 5)
		flush(w)
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	for _, p := range paths { // one connection, before all want one
		res, err := p.client.Get(base)
		if err != nil {
			b.Fatal(err)
		}
		res.Body.Close()
	}
	measure(b, paths, streams, "streams/s", func(c *http.Client) {
		var wg, open sync.WaitGroup
		open.Add(streams)
		for range streams {
			wg.Go(func() {
				pr, pw := io.Pipe()
				req, _ := http.NewRequest("POST", base, pr)
				res, err := c.Do(req)
				open.Done()
				if err != nil {
					b.Error(err)
					return
				}
				defer res.Body.Close()
				open.Wait() // now all are there
				_, _ = io.WriteString(pw, "frame")
				if _, err := io.ReadFull(res.Body, make([]byte, 5)); err != nil {
					b.Error(err)
				}
				pw.Close()
			})
		}
		wg.Wait()
	})
}

func measure(b *testing.B, paths []*benchPath, each float64, unit string, round func(*http.Client)) {
	for _, p := range paths {
		round(p.client)
	}
	n := 0.0
	for b.Loop() {
		for _, p := range paths {
			start, used := time.Now(), processorTime()
			round(p.client)
			p.took += time.Since(start)
			p.end(used)
		}
		n += each
	}
	reportProcessor(b, paths)
	reportPaths(b, paths, n, unit)
}

// reportProcessor reports how much more processor time recording takes than the least
// that ends TLS on both sides, and how much more the least takes that keeps what passes.
func reportProcessor(b *testing.B, paths []*benchPath) {
	if paths[3].median() > 0 {
		b.ReportMetric(paths[2].times(paths[3]), "processor/tls-relay")
		b.ReportMetric(paths[5].times(paths[3]), "keeping-relay/tls-relay")
	}
}

// BenchmarkFrameLatency measures one frame each way in lock step, and reports
// what recording adds to a frame over an opaque tunnel, and the allocations for a frame
// of client, server and the way between them, until all is committed.
func BenchmarkFrameLatency(b *testing.B) {
	const rounds = 500
	base, paths := benchPaths(b, http.HandlerFunc((*matrixOrigin)(nil).copy))
	frame := append([]byte{0, 0, 0, 0, 91}, make([]byte, 91)...)
	times := make([][]time.Duration, len(paths))
	allocations := make([]float64, len(paths))
	var mem runtime.MemStats
	for b.Loop() {
		for i, p := range paths {
			pr, pw := io.Pipe()
			req, _ := http.NewRequest("POST", base, pr)
			res, err := p.client.Do(req)
			if err != nil {
				b.Fatal(err)
			}
			buf := make([]byte, len(frame))
			runtime.ReadMemStats(&mem)
			allocated := mem.Mallocs
			used := processorTime()
			for range rounds {
				start := time.Now()
				_, _ = pw.Write(frame)
				if _, err := io.ReadFull(res.Body, buf); err != nil {
					b.Fatal(err)
				}
				times[i] = append(times[i], time.Since(start))
			}
			pw.Close()
			res.Body.Close()
			p.end(used)
			runtime.ReadMemStats(&mem)
			allocations[i] += float64(mem.Mallocs - allocated)
		}
	}
	reportProcessor(b, paths)
	for _, i := range []int{2, 3} {
		b.ReportMetric(allocations[i]/float64(2*len(times[i])), paths[i].name+"-allocs/frame")
	}
	at := func(i int, q float64) float64 {
		slices.Sort(times[i])
		return float64(times[i][int(q*float64(len(times[i])-1))].Nanoseconds()) / 2000
	}
	for _, q := range []struct {
		name string
		at   float64
	}{{"p50", 0.5}, {"p99", 0.99}} {
		b.ReportMetric(at(1, q.at), "tunnel-us/frame-"+q.name)
		b.ReportMetric(at(2, q.at)-at(1, q.at), "added-us/frame-"+q.name)
	}
}
