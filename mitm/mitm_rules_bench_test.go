package mitm

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"unwire/decode/envelope"
)

// The sets of 100 rules of BenchmarkRules. No call has the host and the method of otherCalls. No frame has the fields of
// otherFields, and those of otherValues have other values.
const (
	otherCalls  = "host:api%[1]d.example.com method:Run%[1]d dir:up path:1.%[2]d"
	otherFields = "method:M dir:up path:9%[2]d.1"
	otherValues = "method:M dir:up path:1=v%[2]d"
)

// hundredRules returns rules with a match that has the number of the rule as its first argument.
func hundredRules(match string) string {
	var text strings.Builder
	text.WriteString("rules:\n")
	for i := range 100 {
		fmt.Fprintf(&text, "  - match: "+match+"\n    set: 7.%[2]d=x\n", i, i+1)
	}
	return text.String()
}

// benchCall sends a request and reads the answer.
func benchCall(b *testing.B, c *http.Client, url, contentType string, body io.Reader) *http.Response {
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, url+"/a.S/M", body)
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("Content-Type", contentType)
	res, err := c.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	return res
}

// BenchmarkRules measures the processor time of client, server and proxy for calls through 100 rules of which none
// matches, compared with no rules. Both take turns, in the order A B B A; "ratio" is the median of the pairs, and "error"
// its standard error. The set "no rules" compares two proxies without rules.
func BenchmarkRules(b *testing.B) {
	for _, h2 := range []bool{true, false} {
		b.Run(fmt.Sprintf("HTTP/2 %v", h2), func(b *testing.B) { benchRules(b, h2) })
	}
}

// benchRules is BenchmarkRules for one version of HTTP.
func benchRules(b *testing.B, h2 bool) {
	origin := newTLSOrigin(b, h2, http.HandlerFunc(echoBody))
	message := oneField("hello")
	frame := envelope.Append(nil, 0, message)
	whole := func(contentType string, body []byte) func(*http.Client) {
		return func(c *http.Client) {
			res := benchCall(b, c, origin.URL, contentType, bytes.NewReader(body))
			if got, err := io.Copy(io.Discard, res.Body); got != int64(len(body)) || err != nil {
				b.Fatal(got, err)
			}
			res.Body.Close()
		}
	}
	lockStep := func(c *http.Client) {
		pr, pw := io.Pipe()
		go func() { _, _ = pw.Write(frame) }()
		res := benchCall(b, c, origin.URL, "application/connect+proto", pr)
		defer res.Body.Close()
		buf := make([]byte, len(frame))
		for i := range 200 {
			if _, err := io.ReadFull(res.Body, buf); err != nil {
				b.Fatal(err)
			}
			if i < 199 {
				_, _ = pw.Write(frame)
			}
		}
		pw.Close()
		_, _ = io.Copy(io.Discard, res.Body)
	}
	proxy := func(match string) *testProxy {
		return newTestProxy(b, []*httptest.Server{origin}, func(o *Options) {
			if match != "" {
				o.Rewrite = newRules(b, hundredRules(match))
			}
		})
	}
	for _, set := range []struct{ name, match string }{{"no rules", ""}, {"other calls", otherCalls}, {"other fields", otherFields}, {"other values", otherValues}} {
		for _, c := range []struct {
			name  string
			calls int
			run   func(*http.Client)
		}{
			{"unary", 300, whole("application/proto", message)},
			{"200 frames", 200, whole("application/connect+proto", bytes.Repeat(frame, 200))},
			{"200 rounds", 5, lockStep},
		} {
			// Go's client of HTTP/1 does not read an answer before the end of its request.
			if c.name == "200 rounds" && !h2 {
				continue
			}
			b.Run(set.name+"/"+c.name, func(b *testing.B) {
				benchPairs(b, h2, c.calls, c.run, func() [2]*testProxy {
					return [2]*testProxy{proxy(""), proxy(set.match)}
				})
			})
		}
	}
}

// newProxiesAfter is the number of pairs that are measured with the same two proxies. Two equal proxies may differ by some
// percent for as long as they exist.
const newProxiesAfter = 8

// benchPairs makes calls through two proxies in turn, and reports the median of the ratios of the processor time and its
// standard error, which is estimated from the quartiles.
func benchPairs(b *testing.B, h2 bool, calls int, call func(*http.Client), proxies func() [2]*testProxy) {
	var ratios []float64
	var clients [2]*http.Client
	var commit [2]func()
	measure := func(i int) time.Duration {
		before := processorTime()
		for range calls {
			call(clients[i])
		}
		commit[i]()
		return processorTime() - before
	}
	for b.Loop() {
		if len(ratios)%newProxiesAfter == 0 {
			for i, p := range proxies() {
				clients[i], commit[i] = p.client(h2), commits(b, p)
				measure(i)
			}
		}
		a, x := measure(0), measure(1)
		y, z := measure(1), measure(0)
		ratios = append(ratios, float64(x+y)/float64(a+z))
	}
	slices.Sort(ratios)
	n := len(ratios)
	b.ReportMetric(ratios[n/2], "ratio")
	// The quartiles of a normal distribution are 1.35 standard deviations apart. The standard error of its median is 1.25
	// times that of its mean.
	b.ReportMetric((ratios[3*n/4]-ratios[n/4])/1.35*1.25/math.Sqrt(float64(n)), "error")
}
