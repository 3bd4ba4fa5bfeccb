package conversation

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"unwire/captures"
	"unwire/captures/profile"
	"unwire/captures/store"
	"unwire/decode"
	"unwire/decode/envelope"
	"unwire/proto"
)

// store records what is in p.
func (p *pieces) store(t testing.TB, path string, o store.Options) {
	t.Helper()
	o.KeepSecrets, o.Profile = true, proto.Profile()
	s, err := store.Create(path, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range p.list {
		rec, err := s.Begin(o.ex)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range o.chunks {
			rec.ChunkAt(c.Dir, c.T, c.Data)
		}
		rec.EndAt(o.ex.Duration, o.ex.Outcome, o.ex.Error)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// listed is what a listing of the file says, and how much of it had to be derived.
func listed(t testing.TB, path string, save bool) (text string, derived int) {
	t.Helper()
	s, err := store.Open(path, store.ReadOptions{Profile: proto.Profile()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // open for reading
	l, err := ListExchanges(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if save {
		if err := l.Save(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	return asText(t, l), len(l.derived)
}

func asText(t testing.TB, l *List) string {
	t.Helper()
	var b strings.Builder
	for i := range l.Exchanges {
		line, err := json.Marshal(l.Exchanges[i])
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(line, '\n'))
	}
	return b.String()
}

// reference is what a listing must say, from the decoder that everything else uses.
func reference(t testing.TB, path string) string {
	t.Helper()
	s, err := store.Open(path, store.ReadOptions{Profile: proto.Profile()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // open for reading
	all, err := FindAll(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	l := &List{}
	for rec, err := range s.Exchanges(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		ex, err := decode.Decode(t.Context(), s, rec.ID, decode.Options{NoTrees: true})
		if err != nil {
			t.Fatal(err)
		}
		rec.RequestHeaders, rec.RequestTrailers, rec.ResponseHeaders, rec.ResponseTrailers = nil, nil, nil, nil
		rec.TLS, rec.Client, rec.Server, rec.Source = captures.TLS{}, "", "", ""
		e := Listed{Exchange: rec, Call: ex.Call, Code: ex.Code, Joined: all.Head(rec.ID), Parts: all.parts(rec.ID)}
		for i := range ex.Frames {
			if ex.Frames[i].Up() {
				e.FramesUp++
			} else {
				e.FramesDown++
			}
		}
		l.Exchanges = append(l.Exchanges, e)
	}
	return asText(t, l)
}

// alter runs statements on a capture, as somebody with the sqlite3 shell would.
func alter(t testing.TB, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // what was committed is there
	db.SetMaxOpenConns(1)
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// drawPieces draws a capture in which calls of all kinds may be pieces.
func drawPieces(t *rapid.T) *pieces {
	p := &pieces{}
	for range rapid.IntRange(0, 12).Draw(t, "exchanges") {
		id := rapid.SampledFrom([]string{"r", "r", "s", "", "a longer id"}).Draw(t, "id")
		data := rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "data")
		answer := rapid.SliceOfN(rapid.SampledFrom([][]byte{frame(say("x")), endFrame, frame(nil), {7}, []byte("data: \n\n")}), 0, 4).Draw(t, "answer")
		var o *recorded
		switch rapid.IntRange(0, 5).Draw(t, "kind") {
		case 0:
			o = p.add(appendPath, "application/proto", "application/proto", appendMessage(id, 1, data), 0)
		case 1:
			o = p.add(ssePath, "application/connect+proto", "text/event-stream", frame(stringField(1, id)), 0, answer...)
		case 2:
			o = p.add("/agent.v1.AgentService/RunPoll", "application/connect+proto", "application/connect+proto", frame(stringField(1, string(stringField(1, id)))), 0, answer...)
		case 3:
			o = p.add("/agent.v1.AgentService/Run", "application/connect+proto", "application/connect+proto", frame(data), 0, answer...)
		case 4:
			o = p.add("/a.B/C", "application/json", "application/json", data, 0, answer...)
		default:
			o = p.add("/plain?x=1", "text/plain", "text/html", data, 0, answer...)
		}
		o.ex.Outcome = rapid.SampledFrom([]captures.Outcome{captures.Complete, captures.Reset, captures.Failed}).Draw(t, "outcome")
		o.ex.Status = rapid.SampledFrom([]int{200, 200, 0, 404, 500}).Draw(t, "status")
		if rapid.IntRange(0, 3).Draw(t, "trailers") == 0 {
			o.ex.ResponseTrailers = headers("grpc-status", "5")
		}
	}
	return p
}

// A listing is the same with summaries and without, whatever is in the capture,
// and says what the decoder says; and so is the conversation around each exchange.
func TestSummariesSayTheSame(t *testing.T) {
	for seed := range 40 {
		path := filepath.Join(t.TempDir(), strconv.Itoa(seed)+".uwc")
		p := rapid.Custom(drawPieces).Example(seed)
		p.store(t, path, store.Options{Profile: proto.Profile()})
		want := reference(t, path)
		first, derived := listed(t, path, true)
		if first != want || derived != len(p.list) {
			t.Fatalf("seed %d: %d of %d derived: %s", seed, derived, len(p.list), cmp.Diff(want, first))
		}
		second, derived := listed(t, path, false)
		if second != want || derived != 0 {
			t.Fatalf("seed %d: %d derived again: %s", seed, derived, cmp.Diff(want, second))
		}
		s, err := store.Open(path, store.ReadOptions{Profile: proto.Profile()})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close() //nolint:errcheck // open for reading
		sameConversations(t, s)
	}
}

// sameConversations compares what is found around each exchange with what is
// found by looking at all.
func sameConversations(t testing.TB, s *store.Store) {
	ctx := context.Background()
	all, err := FindAll(ctx, s)
	if err != nil {
		t.Fatal(err)
	}
	for rec, err := range s.Exchanges(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		c, err := Find(ctx, s, rec.ID)
		if err != nil {
			t.Fatal(err)
		}
		head := all.Head(rec.ID)
		if c.Head(rec.ID) != head || !cmp.Equal(c.parts(head), all.parts(head)) {
			t.Fatalf("exchange %d: %d %v, want %d %v", rec.ID, c.Head(rec.ID), c.parts(head), head, all.parts(head))
		}
		if head == 0 {
			continue
		}
		got, err1 := c.Decode(ctx, s, head, decode.Options{})
		want, err2 := all.Decode(ctx, s, head, decode.Options{})
		if err1 != nil || err2 != nil || len(got.Frames) != len(want.Frames) || !cmp.Equal(got.Appends, want.Appends) {
			t.Fatalf("exchange %d: %v, %v", head, err1, err2)
		}
	}
}

// fallback is a conversation with a call of another kind beside it.
func fallback() *pieces {
	p := &pieces{}
	p.head(0, frame(say("a")), frame(say("b")), endFrame)
	p.append(0, say("one"), time.Millisecond)
	p.add("/agent.v1.AgentService/Run", "application/connect+proto", "application/connect+proto", frame(say("x")), 0, frame(say("y")), endFrame)
	p.append(1, say("two"), 2*time.Millisecond)
	return p
}

// What is summarised at the close need not be derived by the first listing.
func TestIndexAtClose(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.uwc")
	fallback().store(t, path, store.Options{Closing: func(s *store.Store) {
		if err := Index(context.Background(), s); err != nil {
			t.Error(err)
		}
	}})
	if got, derived := listed(t, path, false); derived != 0 || got != reference(t, path) {
		t.Errorf("%d derived\n%s", derived, got)
	}
}

// An exchange that is going on has no summary, and none can be stored beside
// its recorder; one that has ended is summarised once.
func TestListingOfAGrowingCapture(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.uwc")
	s, err := store.Create(path, store.Options{Profile: proto.Profile()})
	if err != nil {
		t.Fatal(err)
	}
	c := headers("content-type", "application/connect+proto")
	rec, err := s.Begin(captures.Exchange{Method: "POST", URL: "https://h" + "/agent.v1.AgentService/Run", HTTP: "2", RequestHeaders: c})
	if err != nil {
		t.Fatal(err)
	}
	rec.Response(200, c)
	for n := 1; n < 4; n++ {
		rec.Chunk(captures.Down, frame(say("x")))
		if err := s.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := Index(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		r, err := store.Open(path, store.ReadOptions{Profile: proto.Profile()})
		if err != nil {
			t.Fatal(err)
		}
		l, err := ListExchanges(t.Context(), r)
		if err != nil || l.Exchanges[0].FramesDown != n || len(l.derived) != 0 {
			t.Errorf("after %d frames: %+v, %v", n, l.Exchanges[0], err)
		}
		m := captures.Summary{Exchange: 1, Version: summaryVersion(proto.Profile()), FramesDown: 99}
		if err := r.PutSummaries(t.Context(), []captures.Summary{m}, 1); !errors.Is(err, captures.ErrInUse) {
			t.Errorf("written beside a recorder: %v", err)
		}
		_ = r.Close()
	}
	rec.End(captures.Complete, "")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, derived := listed(t, path, true); derived != 1 {
		t.Errorf("%d derived", derived)
	}
	if _, derived := listed(t, path, true); derived != 0 {
		t.Errorf("%d derived again", derived)
	}
}

// A recorder that was killed leaves no summaries: the first listing makes them,
// leaves what was going on as it is, and the next recorder goes on.
func TestListingAfterAKill(t *testing.T) {
	dir, killed := t.TempDir(), filepath.Join(t.TempDir(), "killed.uwc")
	path := filepath.Join(dir, "a.uwc")
	s, err := store.Create(path, store.Options{Profile: proto.Profile()})
	if err != nil {
		t.Fatal(err)
	}
	c := headers("content-type", "application/connect+proto")
	for i := range 3 {
		rec, err := s.Begin(captures.Exchange{Method: "POST", URL: "https://h" + "/agent.v1.AgentService/Run", HTTP: "2", RequestHeaders: c})
		if err != nil {
			t.Fatal(err)
		}
		rec.Response(200, c)
		rec.Chunk(captures.Down, frame(say("x")))
		if i != 1 {
			rec.End(captures.Complete, "")
		}
	}
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"", "-wal", "-lock"} { // as a kill leaves them
		data, err := os.ReadFile(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(killed+suffix, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	want := reference(t, killed)
	if !strings.Contains(want, `"Outcome":""`) {
		t.Fatalf("nothing was going on:\n%s", want)
	}
	for _, n := range []int{2, 0} {
		if got, derived := listed(t, killed, true); got != want || derived != n {
			t.Errorf("%d derived, want %d: %s", derived, n, cmp.Diff(want, got))
		}
	}
	fallback().store(t, killed, store.Options{Profile: proto.Profile()})
	want = reference(t, killed)
	if got, derived := listed(t, killed, true); got != want || derived != 5 { // the orphan and four
		t.Errorf("%d derived: %s", derived, cmp.Diff(want, got))
	}
	r, err := store.Open(killed, store.ReadOptions{Profile: proto.Profile()})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close() //nolint:errcheck // open for reading
	sameConversations(t, r)
}

// A summary counts for nothing where the exchange is another by now, where
// another version derived it, and where it cannot be one.
func TestSummariesThatDoNotCount(t *testing.T) {
	for _, statement := range []string{
		"DELETE FROM summaries WHERE exchange = 3",
		"UPDATE summaries SET version = 0",
		"UPDATE summaries SET version = 99",
		"UPDATE summaries SET version = 99 << 24",
		"UPDATE summaries SET frames_up = -1",
		"UPDATE summaries SET frames_down = 1 << 40",
		"UPDATE summaries SET thread = CAST(zeroblob(5000) AS TEXT) WHERE exchange = 2",
		"UPDATE summaries SET rpc = CAST(zeroblob(1000000) AS TEXT)",
		"UPDATE exchanges SET status = 404",
		"INSERT INTO headers VALUES (99, x'00', '[[\"content-type\",\"application/grpc\"]]'); UPDATE exchanges SET response_headers = 99",
		"INSERT INTO headers VALUES (99, x'00', '[[\"grpc-status\",\"5\"]]'); UPDATE exchanges SET response_trailers = 99",
		"INSERT INTO segments SELECT n + 1000, last + 1000, exchange, seq + 1000, chunks, t_ns, size_up, size_down, entries, codec, blob, data FROM segments",
		"DELETE FROM segments",
	} {
		t.Run(statement, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "a.uwc")
			fallback().store(t, path, store.Options{Profile: proto.Profile()})
			_, _ = listed(t, path, true)
			alter(t, path, statement)
			want := reference(t, path)
			got, derived := listed(t, path, true)
			if got != want || derived == 0 {
				t.Errorf("%d derived: %s", derived, cmp.Diff(want, got))
			}
			if _, derived := listed(t, path, true); derived != 0 && !strings.Contains(statement, "99") {
				t.Errorf("%d derived again", derived)
			}
		})
	}
}

// A capture that was indexed with one profile, or without any, is joined by the
// profile that it is opened with.
func TestSummariesOfAnotherProfile(t *testing.T) {
	other := proto.Profile()
	other.Split.Heads = other.Split.Heads[:0]
	for _, indexed := range []*profile.Profile{nil, other} {
		path := filepath.Join(t.TempDir(), "a.uwc")
		fallback().store(t, path, store.Options{Profile: proto.Profile()})
		want := reference(t, path)
		for range 2 { // back and forth: each replaces the summaries of the other
			index(t, path, indexed)
			if got, derived := listed(t, path, true); got != want || derived == 0 {
				t.Errorf("%d derived: %s", derived, cmp.Diff(want, got))
			}
		}
		if _, derived := listed(t, path, false); derived != 0 {
			t.Errorf("%d derived again", derived)
		}
	}
}

// index stores the summaries that a profile gives.
func index(t *testing.T, path string, p *profile.Profile) {
	t.Helper()
	s, err := store.Open(path, store.ReadOptions{Profile: p})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // open for reading
	if err := Index(t.Context(), s); err != nil {
		t.Fatal(err)
	}
}

// A file may claim what it likes of its pieces: a conversation is put together
// from what the exchanges say.
func TestForgedSummaries(t *testing.T) {
	for _, statement := range []string{
		"UPDATE summaries SET thread = 'r'",
		"UPDATE summaries SET thread = 'r', rpc = 'BidiAppend' WHERE exchange = 3",
		"UPDATE summaries SET thread = 'another' WHERE exchange = 1",
		"UPDATE summaries SET rpc = 'BidiAppend'",
		"UPDATE summaries SET rpc = 'OtherSSE' WHERE exchange = 1",
		"UPDATE meta SET value = CAST('1 999' AS BLOB) WHERE name = 'summarised to'",
		"UPDATE meta SET value = CAST('nonsense' AS BLOB) WHERE name = 'summarised to'",
		"UPDATE meta SET value = CAST('1 -999' AS BLOB) WHERE name = 'summarised to'",
	} {
		t.Run(statement, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "a.uwc")
			fallback().store(t, path, store.Options{Profile: proto.Profile()})
			_, _ = listed(t, path, true)
			alter(t, path, statement)
			s, err := store.Open(path, store.ReadOptions{Profile: proto.Profile()})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close() //nolint:errcheck // open for reading
			if _, err := ListExchanges(t.Context(), s); err != nil {
				t.Error(err)
			}
			c, err := Decode(t.Context(), s, 1, decode.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if c == nil || (c.ID != 1 || len(c.Heads) != 1 || len(c.Appends) != 2 || len(c.Frames) != 5) {
				t.Errorf("%+v", c)
			}
		})
	}
}

// What has no room in a summary is derived every time.
func TestSummaryTooLarge(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.uwc")
	p := &pieces{}
	p.add("/"+strings.Repeat("s", 10_000)+"/M", "application/proto", "application/proto", say("x"), 0)
	p.append(0, say("one"), 0)
	p.store(t, path, store.Options{Profile: proto.Profile()})
	want := reference(t, path)
	for _, n := range []int{2, 1, 1} {
		if got, derived := listed(t, path, true); got != want || derived != n {
			t.Errorf("%d derived, want %d: %s", derived, n, cmp.Diff(want, got))
		}
	}
	s, err := store.Open(path, store.ReadOptions{Profile: proto.Profile()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // open for reading
	if _, upTo, err := s.Thread(t.Context(), "r", summaryVersion(s.Profile())); err != nil || upTo > 0 {
		t.Errorf("up to %d, %v", upTo, err)
	}
	if _, upTo, err := s.Thread(t.Context(), "", summaryVersion(s.Profile())); err != nil || upTo != math.MinInt64 {
		t.Errorf("no thread: up to %d, %v", upTo, err)
	}
}

// An end of time leaves what was derived by then.
func TestIndexInTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.uwc")
	p := &pieces{}
	for i := range 50 {
		p.append(uint64(i), say(fmt.Sprint(i)), 0)
	}
	p.store(t, path, store.Options{Closing: func(s *store.Store) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := Index(ctx, s); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}})
	if got, derived := listed(t, path, true); derived != 50 || got != reference(t, path) {
		t.Errorf("%d derived\n%s", derived, got)
	}
}

func TestIndex(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.uwc")
	store, err := store.Create(path, store.Options{Profile: proto.Profile()})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close() //nolint:errcheck // the test ends
	c := headers("content-type", "application/connect+proto")
	rec, err := store.Begin(captures.Exchange{Method: "POST", URL: "https://h" + "/agent.v1.AgentService/Run", HTTP: "2", RequestHeaders: c, Started: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	rec.Chunk(captures.Up, envelope.Append(nil, 0, []byte{0x3a, 0}))
	rec.Response(200, c)
	rec.Chunk(captures.Down, envelope.Append(envelope.Append(nil, 0, []byte{8, 1}), envelope.EndStream, []byte("{}")))
	rec.End(captures.Complete, "")
	ctx := context.Background()
	if err := store.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := Index(ctx, store); err != nil {
			t.Fatal(err)
		}
	}
	for l, err := range store.Listing(ctx, summaryVersion(store.Profile())) {
		if m := l.Summary; err != nil || m == nil || m.FramesUp != 1 || m.FramesDown != 2 || m.Code != "ok" {
			t.Errorf("%+v, %v", m, err)
		}
	}
	ex, err := decode.Decode(ctx, store, rec.ID(), decode.Options{})
	if err != nil || ex.Code != "ok" || len(ex.Frames) != 3 || ex.Frame(captures.Down, 1).End == nil || ex.Frame(captures.Up, 1) != nil {
		t.Errorf("%v, %v", ex, err)
	}
}

// recordMillion records n exchanges of frames frames each.
func recordMillion(tb testing.TB, path string, n, frames int) {
	tb.Helper()
	store, err := store.Create(path, store.Options{Profile: proto.Profile(), KeepSecrets: true})
	if err != nil {
		tb.Fatal(err)
	}
	c := headers("content-type", "application/connect+proto", "user-agent", "connect-es/1.6.1", "connect-protocol-version", "1",
		"x-request-id", "6b1f0c9e-2d0b-4a30-9f5e-0b9c1a7d1c11", "date", "Sat, 21 Nov 2026 10:22:09 GMT", "accept-encoding", "gzip, br")
	delta := envelope.Append(nil, 0, append([]byte{0x0a, 48, 0x0a, 46}, "the next words of an answer as a model says it"...))
	for range n {
		rec, err := store.Begin(captures.Exchange{Method: "POST", URL: "https://api.example.com" + "/agent.v1.AgentService/Run", HTTP: "2", RequestHeaders: c})
		if err != nil {
			tb.Fatal(err)
		}
		rec.Chunk(captures.Up, delta)
		rec.Response(200, c)
		for range frames - 2 {
			rec.Chunk(captures.Down, delta)
		}
		rec.Chunk(captures.Down, envelope.Append(nil, envelope.EndStream, []byte("{}")))
		rec.End(captures.Complete, "")
	}
	if err := store.Close(); err != nil {
		tb.Fatal(err)
	}
}

// BenchmarkListMillionFrames opens and lists a capture of a million frames in
// 2,000 exchanges: without summaries, as a recorder that was killed leaves it,
// and with them.
func BenchmarkListMillionFrames(b *testing.B) {
	const exchanges, frames = 2000, 500
	path := filepath.Join(b.TempDir(), "a.uwc")
	recordMillion(b, path, exchanges, frames)
	list := func(b *testing.B, save bool) {
		store, err := store.Open(path, store.ReadOptions{Profile: proto.Profile()})
		if err != nil {
			b.Fatal(err)
		}
		defer store.Close() //nolint:errcheck // open for reading
		l, err := ListExchanges(b.Context(), store)
		if err != nil || len(l.Exchanges) != exchanges || l.Exchanges[0].FramesDown != frames-1 {
			b.Fatal(fmt.Errorf("%d exchanges, %w", len(l.Exchanges), err))
		}
		if save {
			if err := l.Save(b.Context(), store); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("derived", func(b *testing.B) {
		for range b.N {
			list(b, false)
		}
		b.ReportMetric(float64(b.N)*exchanges*frames/b.Elapsed().Seconds(), "frames/s")
	})
	list(b, true)
	b.Run("summarised", func(b *testing.B) {
		for range b.N {
			list(b, false)
		}
	})
}
