package replay

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"unwire/captures"
	"unwire/replay/outbound"
)

// BenchmarkReplay holds a replayed call against a bare client that posts the same
// bytes over the same transport: both open a connection
// of their own with TLS and HTTP/2, in turns, within one run.
func BenchmarkReplay(b *testing.B) {
	calls := map[string]func(l *lab) int64{
		"unary":  func(l *lab) int64 { return l.say("hello") },
		"stream": func(l *lab) int64 { return countTo(l) },
	}
	for name, record := range calls {
		b.Run(name, func(b *testing.B) {
			l := newLab(b)
			id := record(l)
			o := l.withToken(l.options())
			plan := l.plan(id, o)
			headers, _, err := plan.RequestHeaders()
			if err != nil {
				b.Fatal(err)
			}
			body, err := upBody(b.Context(), l.store, id)
			if err != nil {
				b.Fatal(err)
			}
			var bare, replayed []time.Duration
			for b.Loop() {
				start := time.Now()
				bareCall(l, plan, headers, body)
				between := time.Now()
				r, err := l.plan(id, o).Send(b.Context(), nil)
				if err != nil {
					b.Fatal(err)
				}
				l.expect(r, Same, FromServer, "ok")
				bare, replayed = append(bare, between.Sub(start)), append(replayed, time.Since(between))
			}
			us := func(d []time.Duration) float64 {
				slices.Sort(d)
				return float64(d[len(d)/2].Nanoseconds()) / 1000
			}
			b.ReportMetric(us(bare), "bare-us/call")
			b.ReportMetric(us(replayed)-us(bare), "added-us/call")
			b.ReportMetric(us(replayed)/us(bare), "replay/bare")
		})
	}
}

// bareCall sends what a plan would by net/http alone.
func bareCall(l *lab, p *Plan, headers captures.Headers, body []byte) {
	tr := outbound.New(p.url.Scheme, "2", p.isLocal(), true, p.o.Policy)
	defer tr.CloseIdleConnections()
	req, err := http.NewRequestWithContext(l.Context(), p.shown.Method, p.url.String(), bytes.NewReader(body))
	if err != nil {
		l.Fatal(err)
	}
	for _, h := range headers {
		req.Header.Add(h.Name, h.Value)
	}
	resp, err := tr.RoundTrip(req)
	if err != nil {
		l.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		l.Fatal(resp.Status, err)
	}
}
