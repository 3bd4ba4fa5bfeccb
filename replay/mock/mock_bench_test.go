package mock

import (
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/structpb"

	"unwire/mitm"
)

// BenchmarkMock measures calls to a mock, and to the server that was recorded: unary ones, and streams of 100 answers.
// Both take turns; "mock/server" is the median of the ratios of their times.
func BenchmarkMock(b *testing.B) {
	const calls, answers = 50, 100
	f := newFixture(b)
	origin := httptest.NewServer(sessionServer())
	defer origin.Close()
	unary := func(addr string) {
		c := connect.NewClient[structpb.Struct, structpb.Struct](f.httpClient("1.1", false), "http://"+addr+service+"Unary")
		for range calls {
			if _, err := c.CallUnary(b.Context(), connect.NewRequest(message(newID(), map[string]any{"text": "hello"}))); err != nil {
				b.Fatal(err)
			}
		}
	}
	stream := func(addr string) {
		c := connect.NewClient[structpb.Struct, structpb.Struct](f.httpClient("1.1", false), "http://"+addr+service+"Count")
		for range calls / 10 {
			s, err := c.CallServerStream(b.Context(), connect.NewRequest(message(newID(), map[string]any{"n": answers})))
			if err != nil {
				b.Fatal(err)
			}
			n := 0
			for s.Receive() {
				n++
			}
			if s.Err() != nil || n != answers {
				b.Fatal(n, s.Err())
			}
		}
	}
	f.record(sessionServer(), mitm.Options{}, func(addr string) {
		unary(addr)
		stream(addr)
	})
	for name, run := range map[string]func(addr string){"unary": unary, "stream": stream} {
		b.Run(name, func(b *testing.B) {
			f.mock(Options{}, func(addr string) {
				var ratios []float64
				var took [2]time.Duration
				for b.Loop() {
					var pair [2]time.Duration
					for i, to := range []string{addr, origin.Listener.Addr().String()} {
						start := time.Now()
						run(to)
						pair[i] = time.Since(start)
						took[i] += pair[i]
					}
					ratios = append(ratios, float64(pair[0])/float64(pair[1]))
				}
				slices.Sort(ratios)
				b.ReportMetric(ratios[len(ratios)/2], "mock/server")
				b.ReportMetric(float64(took[0].Microseconds())/float64(len(ratios)*calls), "mock-us/call")
			})
		})
	}
}
