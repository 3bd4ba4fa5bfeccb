package pcapng_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"unwire/captures"
	"unwire/captures/internal/samples"
	"unwire/captures/pcap"
	"unwire/captures/pcapng"
	"unwire/captures/store"
	"unwire/captures/transfer"
)

// A call is what a round trip keeps of an exchange.
type call struct {
	What     string
	Status   int
	HTTP     string
	Headers  [4]captures.Headers
	TLS      captures.TLS
	Server   string
	Outcome  captures.Outcome
	Started  time.Time
	Duration time.Duration
	Chunks   []string
}

// calls reads a capture whole, in the order of time. Chunks of one direction
// and time are one: HTTP/1 does not tell them apart.
func calls(t testing.TB, s *store.Store) []call {
	t.Helper()
	var out []call
	for _, w := range samples.Read(t, s) {
		c := call{
			What: w.Method + " " + w.URL, Status: w.Status, HTTP: w.HTTP, TLS: w.TLS, Server: w.Server, Outcome: w.Outcome,
			Started: w.Started, Duration: w.Duration,
			Headers: [4]captures.Headers{w.RequestHeaders, w.RequestTrailers, w.ResponseHeaders, w.ResponseTrailers},
		}
		c.TLS.Cipher = ""
		if c.Outcome == captures.InFlight {
			c.Outcome = captures.Incomplete
		}
		if c.Outcome == captures.Incomplete {
			c.Duration = 0 // the packets end where they end
		}
		for _, k := range w.Chunks {
			c.Chunks = append(c.Chunks, fmt.Sprintf("%s %v %x", k.Dir, k.T, k.Data))
		}
		out = append(out, c)
	}
	slices.SortStableFunc(out, func(a, b call) int { return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.What, b.What)) })
	return out
}

// record records what a rapid.T draws: exchanges on shared and own connections,
// one after the other and at once, of both versions, with and without TLS,
// bodies, trailers, and an end.
func record(t *rapid.T, s *store.Store) {
	at := time.Unix(1_700_000_000, 0).UTC()
	for i := range rapid.IntRange(1, 12).Draw(t, "exchanges") {
		at = at.Add(time.Duration(rapid.IntRange(1, 2_000_000).Draw(t, "later")))
		h2, secure := rapid.Bool().Draw(t, "h2"), rapid.Bool().Draw(t, "secure")
		ex := captures.Exchange{
			Method: rapid.SampledFrom([]string{"GET", "POST", "PUT", "HEAD"}).Draw(t, "method"),
			URL:    fmt.Sprintf("://api.example/p.v1.S/M%d?q=%%20a", i), HTTP: "1.1", Started: at,
			Client: fmt.Sprintf("10.1.0.1:%d", 4000+rapid.IntRange(0, 2).Draw(t, "client")), Server: "10.0.0.9:8443",
		}
		ex.URL = "http" + ex.URL
		if h2 {
			ex.HTTP = "2"
		}
		if secure {
			ex.URL = "https" + strings.TrimPrefix(ex.URL, "http")
			ex.TLS = captures.TLS{Version: rapid.SampledFrom([]string{"1.2", "1.3"}).Draw(t, "tls"), ServerName: "api.example", ALPN: "http/1.1"}
			if h2 {
				ex.TLS.ALPN = "h2"
			}
		}
		outcome := rapid.SampledFrom([]captures.Outcome{captures.Complete, captures.Complete, captures.Complete, captures.Canceled, captures.Reset, captures.Incomplete}).Draw(t, "outcome")
		up, down := body(t, "up"), body(t, "down")
		if ex.Method == "GET" || ex.Method == "HEAD" {
			up = nil
		}
		if ex.Method == "HEAD" {
			down = nil
		}
		var trailers [2]captures.Headers
		byLength := false // HTTP/1: with its last byte a body has ended
		framing := func(dir captures.Direction, parts [][]byte) captures.Headers {
			h := captures.Headers{{Name: "x-a", Value: rapid.StringMatching(`[!-~]([ -~]{0,8}[!-~])?`).Draw(t, "value")}, {Name: "x-a", Value: "again"}}
			size := len(bytes.Join(parts, nil))
			trails := outcome == captures.Complete && (dir == captures.Down && ex.Method != "HEAD" || dir == captures.Up && size > 0) && rapid.Bool().Draw(t, "trailers")
			switch {
			case trails:
				trailers[dir] = captures.Headers{{Name: "x-t", Value: "v"}}
				fallthrough
			case size > 0 && rapid.Bool().Draw(t, "chunked"):
				if !h2 {
					return append(h, captures.Header{Name: "Transfer-Encoding", Value: "chunked"})
				}
			case size > 0 && dir == captures.Down && outcome == captures.Complete && rapid.Bool().Draw(t, "to the end"):
			case size > 0 || dir == captures.Down:
				byLength = !h2 && size > 0
				return append(h, captures.Header{Name: "Content-Length", Value: strconv.Itoa(size)})
			}
			return h
		}
		lower := func(h captures.Headers) captures.Headers {
			for i := range h {
				if h2 {
					h[i].Name = strings.ToLower(h[i].Name)
				}
			}
			return h
		}
		ex.RequestHeaders = lower(framing(captures.Up, up))
		if !h2 {
			ex.RequestHeaders = append(captures.Headers{{Name: "Host", Value: "api.example"}}, ex.RequestHeaders...)
		}
		rec, err := s.Begin(ex)
		if err != nil {
			t.Fatal(err)
		}
		var now time.Duration
		later := func() time.Duration {
			now += time.Duration(rapid.IntRange(1, 1_000_000).Draw(t, "step"))
			return now
		}
		for _, p := range up {
			rec.ChunkAt(captures.Up, later(), p)
		}
		answered := outcome == captures.Complete || len(down) > 0
		if byLength = false; answered {
			rec.Response(rapid.SampledFrom([]int{200, 404, 500}).Draw(t, "status"), lower(framing(captures.Down, down)))
		}
		for i, p := range down {
			if outcome != captures.Complete && i == len(down)-1 {
				break // cut off before its end
			}
			rec.ChunkAt(captures.Down, later(), p)
		}
		if outcome == captures.Complete {
			rec.Trailers(captures.Up, trailers[captures.Up])
			rec.Trailers(captures.Down, trailers[captures.Down])
		}
		if len(down) == 0 || outcome != captures.Complete || !byLength && rapid.Bool().Draw(t, "end later") {
			later()
		}
		rec.EndAt(now, outcome, "")
	}
}

// body is in parts that are chunks.
func body(t *rapid.T, what string) [][]byte {
	return rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 1, 3000), 0, 4).Draw(t, what)
}

// there exports and imports a capture.
func there(t testing.TB, from transfer.Source, dir string) (*store.Store, []pcap.Connection, pcapng.Result) {
	t.Helper()
	var file bytes.Buffer
	done, err := pcapng.Export(context.Background(), &file, from, pcapng.Options{Name: "x.uwc"})
	if err != nil {
		t.Fatal(err)
	}
	to, err := store.Create(filepath.Join(dir, "back.uwc"), store.Options{KeepSecrets: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = to.Close() })
	var conns []pcap.Connection
	sum, err := pcap.Import(context.Background(), bytes.NewReader(file.Bytes()), pcap.Options{
		Store: to, Connection: func(c pcap.Connection) { conns = append(conns, c) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if sum.Packets != done.Packets || sum.Connections != int64(done.Connections) {
		t.Errorf("imported %+v of %+v", sum, done)
	}
	return to, conns, done
}

// TestRoundTrip: what is exported and imported is the same exchanges with the
// same chunks at the same times.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp("", "unwire-pcapng-")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(dir)
		from, err := store.Create(filepath.Join(dir, "a.uwc"), store.Options{KeepSecrets: true})
		if err != nil {
			rt.Fatal(err)
		}
		defer from.Close()
		record(rt, from)
		if err := from.Flush(context.Background()); err != nil {
			rt.Fatal(err)
		}
		to, conns, _ := there(t, from, dir)
		defer to.Close()
		want, got := calls(t, from), calls(t, to)
		if diff := gocmp.Diff(want, got); diff != "" {
			rt.Fatalf("exported (-), imported (+):\n%s\n%+v", diff, conns)
		}
	})
}

// TestOddExchanges: what cannot be sent as it was recorded is sent in another
// form, or left out, and counted.
func TestOddExchanges(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	from := samples.Store(t, dir, store.Options{KeepSecrets: true})
	begin := func(n int, ex captures.Exchange) captures.Recording {
		ex.Started = time.Unix(1_700_000_000+int64(n), 0)
		rec, err := from.Begin(ex)
		if err != nil {
			t.Fatal(err)
		}
		return rec
	}
	failed := begin(0, captures.Exchange{Method: "GET", URL: "https://h/failed", HTTP: "2"})
	failed.EndAt(1, captures.Failed, "refused")

	changed := begin(1, captures.Exchange{Method: "POST", URL: "http://h/changed", HTTP: "1.1", RequestHeaders: captures.Headers{{Name: "Content-Length", Value: "99"}, {Name: "X-Bad", Value: "a\r\nb: c"}}})
	changed.ChunkAt(captures.Up, 1, []byte("shorter"))
	changed.Response(200, captures.Headers{{Name: "Content-Length", Value: "3"}})
	changed.ChunkAt(captures.Down, 2, []byte("abc"))
	changed.EndAt(3, captures.Complete, "")

	upgraded := begin(2, captures.Exchange{Method: "GET", URL: "http://h/up", HTTP: "1.1", RequestHeaders: captures.Headers{{Name: "Upgrade", Value: "x"}, {Name: "Connection", Value: "Upgrade"}}})
	upgraded.Response(http.StatusSwitchingProtocols, captures.Headers{{Name: "Upgrade", Value: "x"}})
	upgraded.ChunkAt(captures.Up, 10, []byte("raw up"))
	upgraded.ChunkAt(captures.Down, 20, []byte("raw down"))
	upgraded.EndAt(30, captures.Complete, "")

	orphan := begin(3, captures.Exchange{URL: "https://[2001:db8::5]:444/", HTTP: "2", Client: "10.0.0.1:5", Server: "[2001:db8::5]:444", TLS: captures.TLS{Version: "1.3", ALPN: "h2"}})
	orphan.Response(200, nil)
	orphan.ChunkAt(captures.Down, 5, []byte("answer"))
	orphan.EndAt(6, captures.Incomplete, "the request was not captured")

	large := begin(4, captures.Exchange{Method: "GET", URL: "https://h/large", HTTP: "2"})
	large.Response(200, nil)
	large.ChunkAt(captures.Down, 5, bytes.Repeat([]byte("0123456789"), 1_000_000))
	large.EndAt(6, captures.Complete, "")
	begin(5, captures.Exchange{Method: "GET", URL: "https://other/in-flight", HTTP: "2"}).ChunkAt(captures.Up, 1, []byte("x"))

	if err := from.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	to, conns, done := there(t, from, dir)
	if done.WithoutPackets != 1 || done.Reframed != 1 || done.Exchanges != 5 {
		t.Errorf("%+v", done)
	}
	var got []string
	for _, w := range samples.Read(t, to) {
		var bodies [2][]byte
		for _, c := range w.Chunks {
			bodies[c.Dir] = append(bodies[c.Dir], c.Data...)
		}
		got = append(got, fmt.Sprintf("%s %s %d %s %d %d", w.Method, w.URL, w.Status, w.Outcome, len(bodies[0]), len(bodies[1])))
	}
	want := []string{
		"POST http://h/changed 200 complete 7 3",
		"GET http://h/up 101 complete 6 8",
		" https://[2001:db8::5]:444/ 200 incomplete 0 6",
		"GET https://h/large 200 complete 0 10000000",
		"GET https://other/in-flight 0 incomplete 1 0",
	}
	if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		t.Errorf("imported %q\n%+v", got, conns)
	}
}

// rewritten makes a capture of three exchanges, of which a rule changed the first two.
func rewritten(t testing.TB, dir string) *store.Store {
	t.Helper()
	from := samples.Store(t, dir, store.Options{})
	for i, version := range []string{"1.1", "2", "1.1"} {
		rec, err := from.Begin(captures.Exchange{
			Method: "POST", URL: "https://h/a", HTTP: version, Started: time.Unix(1_700_000_000+int64(i), 0),
			RequestHeaders: captures.Headers{{Name: "Content-Length", Value: "5"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		rec.ChunkAt(captures.Up, 1, []byte("asked"))
		rec.Response(200, captures.Headers{{Name: "Content-Length", Value: "6"}})
		rec.ChunkAt(captures.Down, 2, []byte("answer"))
		if i < 2 {
			rec.Edit(captures.Up, 0, 5, "first é", []byte("begged"))
		}
		rec.EndAt(3, captures.Complete, "")
	}
	if err := from.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	return from
}

// TestRewritten: the packets of an exchange that rules changed have a comment, and those of others have none.
func TestRewritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	from := rewritten(t, dir)
	var file bytes.Buffer
	if _, err := pcapng.Export(context.Background(), &file, from, pcapng.Options{}); err != nil {
		t.Fatal(err)
	}
	for i, least := range []int{2, 2, 0} {
		comment := fmt.Sprintf("unwire: exchange %d was changed by rules (first é); shown: received", i+1)
		if n := bytes.Count(file.Bytes(), []byte(comment)); n < least || least == 0 && n > 0 {
			t.Errorf("%d packets have the comment of exchange %d", n, i+1)
		}
	}

	// Readers understand the blocks.
	to, _, _ := there(t, from, dir)
	got := samples.Read(t, to)
	if len(got) != 3 {
		t.Fatalf("%d exchanges were imported", len(got))
	}
	for _, w := range got {
		if w.Status != 200 || w.Outcome != captures.Complete || len(w.Chunks) != 2 || string(w.Chunks[1].Data) != "answer" {
			t.Errorf("%+v", w)
		}
	}
}
