package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"unwire/captures"
	"unwire/replay/credential"
	"unwire/replay/outbound"
)

func openJournal(t *testing.T, path string) *outbound.Journal {
	t.Helper()
	j, err := outbound.OpenJournal(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

// entries are the requests and the answers that a journal names.
func entries(t *testing.T, path string) (asked, answered []outbound.Entry) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(b) {
		var e outbound.Entry
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		if e.Event == "request" {
			asked = append(asked, e)
		} else {
			answered = append(answered, e)
		}
	}
	return asked, answered
}

func TestPace(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	id := l.say("hello")
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	o := l.withToken(l.options())
	o.Pace = &outbound.Pace{Interval: 150 * time.Millisecond, Budget: 3, Journal: openJournal(t, path), Local: true}
	start, before := time.Now(), l.server.requests.Load()
	for range 3 {
		l.expect(l.replay(id, o), Same, FromServer, "ok")
	}
	if d := time.Since(start); d < 300*time.Millisecond {
		t.Errorf("three requests in %s", d)
	}
	r := l.replay(id, o)
	l.expect(r, Refused, FromLocal, "")
	if !strings.Contains(r.Message, "the limit of 3 requests (--budget, --live-budget) is reached") || l.server.requests.Load()-before != 3 {
		t.Errorf("%s, %d requests", r.Message, l.server.requests.Load()-before)
	}
	journal, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"n":1,`, `"n":3,`, `"event":"request","exchange":1,"host":"127.0.0.1","method":"POST"`, `"effects":"unknown"`, `"event":"answer"`, `"verdict":"same"`} {
		if !bytes.Contains(journal, []byte(want)) {
			t.Errorf("the journal has no %s:\n%s", want, journal)
		}
	}
	if bytes.Count(journal, []byte("\n")) != 6 || bytes.Contains(journal, []byte("made-up-secret")) {
		t.Errorf("the journal is\n%s", journal)
	}
}

// A server that has had enough is asked nothing more, not in the next run either.
func TestEnoughIsEnough(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status int
		header string
		body   string
		want   string
	}{
		{429, "", "", "answered 429"},
		{401, "", `{"code":"unauthenticated"}`, "answered unauthenticated"},
		{403, "", `{"code":"permission_denied"}`, "answered permission_denied"},
		{200, "3600", "{}", "asked to be left alone until"},
		{429, "Fri, 01 Jan 2190 00:00:00 GMT", "", "asked to be left alone until 2190-01-01T00:00:00Z"},
	} {
		l := newLab(t)
		id := l.say("hello", connect.WithProtoJSON())
		asked := 0
		s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			asked++
			w.Header().Set("content-type", "application/json")
			if c.header != "" {
				w.Header().Set("retry-after", c.header)
			}
			w.WriteHeader(c.status)
			_, _ = w.Write([]byte(c.body))
		})
		path := filepath.Join(t.TempDir(), "journal.jsonl")
		o := l.withToken(l.options())
		o.To, o.Roots = mustURL(s.URL), nil
		o.Pace = &outbound.Pace{Interval: time.Millisecond, Journal: openJournal(t, path), Local: true}
		l.replay(id, o)
		if r := l.replay(id, o); r.Comparison != Refused || !strings.Contains(r.Message, c.want) {
			t.Errorf("%d: %s %s", c.status, r.Comparison, r.Message)
		}
		o.Pace = &outbound.Pace{Interval: time.Millisecond, Journal: openJournal(t, path), Local: true}
		if r := l.replay(id, o); (r.Comparison == Refused) != (c.header != "") {
			t.Errorf("%d, the next run: %s %s", c.status, r.Comparison, r.Message)
		}
		if want := 2; c.header == "" && asked != want || c.header != "" && asked != 1 {
			t.Errorf("%d: asked %d times", c.status, asked)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Time{
		"": {}, "0": now, "120": now.Add(2 * time.Minute), "Sun, 01 Mar 2026 12:05:00 GMT": now.Add(5 * time.Minute),
		"Sunday, 01-Mar-26 12:05:00 GMT": now.Add(5 * time.Minute), "soon": {}, "-1": {}, "99999999999999": {},
	} {
		if got := outbound.RetryAfter(value, now); !got.Equal(want) {
			t.Errorf("%q: %s, want %s", value, got, want)
		}
	}
}

func TestJournalErrors(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"other": "hello\n", "number": "{\"v\":2}\n"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := outbound.OpenJournal(path); err == nil || !strings.Contains(err.Error(), "line 1 is not a journal entry") {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A process that was killed may leave half a line.
	path := filepath.Join(dir, "cut")
	if err := os.WriteFile(path, []byte(`{"v":1,"n":7,"event":"request"}`+"\n"+`{"v":1,"n":8,"ev`), 0o600); err != nil {
		t.Fatal(err)
	}
	for want := int64(8); want < 10; want++ {
		j, err := outbound.OpenJournal(path)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := (&outbound.Pace{Journal: j}).Note(outbound.Entry{Event: "request"}); err != nil || n != want {
			t.Errorf("entry %d, %v, want %d", n, err, want)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Secrets go to no other host than the one that they are of.
func TestSecretsStayWithTheirHost(t *testing.T) {
	store, id := written(t, captures.Exchange{
		Method: "POST", URL: "https://api.example.com/a.B/C", HTTP: "1.1",
		RequestHeaders: captures.Headers{{Name: "content-type", Value: "application/json"}, {Name: "authorization", Value: "Bearer abc-made-up"}},
		Status:         200,
	}, up([]byte("{}")))
	for to, want := range map[string]string{"https://other.example.com": "is not sent to other.example.com", "https://127.0.0.1:1": "", "": ""} {
		o := settings{Live: true, AllowHosts: []string{"other.example.com", "api.example.com"}, OmitSecrets: false}
		c, err := credential.Resolver{Getenv: func(string) string { return "made-up" }}.Load("")
		if err != nil {
			t.Fatal(err)
		}
		if o.Credentials = c; to != "" {
			o.To = mustURL(to)
		}
		p, err := newPlan(t.Context(), store, id, o)
		if err != nil {
			t.Fatal(err)
		}
		if want == "" && p.shown.Refusal != "" || !strings.Contains(p.shown.Refusal, want) {
			t.Errorf("%s: %q, want %q", to, p.shown.Refusal, want)
		}
		if want != "" {
			if r, err := p.Send(t.Context(), nil); err != nil || r.Comparison != Refused {
				t.Errorf("%s: %+v, %v", to, r, err)
			}
		}
	}
}

func TestLearn(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.server.answer.Store(" today")
	id := l.say("hello")
	// Another answer that is the same each time is not the edit's doing, and one
	// that is another each time is volatile.
	l.server.answer.Store(" tomorrow")
	o := l.withToken(l.options())
	lesson, err := learn(t.Context(), l.store, id, o, nil)
	if err != nil {
		t.Fatal(err)
	}
	o.Lesson = lesson
	r := l.replay(id, o)
	l.expect(r, Same, FromServer, "ok")
	if len(r.Diff) != 1 || r.Diff[0].Ignored != ignoredUnedited {
		t.Errorf("%+v", r.Diff)
	}
	o.Edits = l.options("set 1=other").Edits
	l.expect(l.replay(id, o), Differs, FromServer, "ok")

	l.server.drift.Store(true)
	o = l.withToken(l.options())
	if o.Lesson, err = learn(t.Context(), l.store, id, o, nil); err != nil {
		t.Fatal(err)
	}
	r = l.replay(id, o)
	l.expect(r, Same, FromServer, "ok")
	if len(r.Diff) != 1 || r.Diff[0].Ignored != ignoredLearnt {
		t.Errorf("%+v", r.Diff)
	}

	// Not where it could have effects.
	o = l.withToken(l.options())
	o.To, o.Live, o.AllowHosts = mustURL("https://api.example.com"), true, []string{"api.example.com"}
	if _, err := learn(t.Context(), l.store, id, o, nil); !errors.Is(err, outbound.ErrRefused) {
		t.Error(err)
	}
}

// The result names the time that a server asks to wait, however long.
func TestResultNamesRetryAfter(t *testing.T) {
	l := newLab(t)
	id := l.say("hello")
	for _, status := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		s := newVersionServer(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(status)
		}), false, true, true)
		o := l.withToken(l.options())
		o.To = mustURL(s.URL)
		r := l.replay(id, o)
		if left := time.Until(r.RetryAfter); r.Comparison != Rejected || left < 59*time.Minute || left > time.Hour {
			t.Errorf("%d: %s, retry after %s", status, r.Comparison, r.RetryAfter)
		}
		if got := strings.Join(r.Concluded, "; "); !strings.Contains(got, "the server asked to wait 1h0m0s, until 2") {
			t.Errorf("%d: remarks %q", status, got)
		}
	}
}
