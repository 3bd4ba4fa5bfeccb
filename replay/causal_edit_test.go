package replay

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"unwire/captures/store"
	profiles "unwire/proto"
	"unwire/replay/edit"
	"unwire/replay/live"
	"unwire/replay/testdata/toolloop"
)

// recordedLoop is a conversation that a tool loop has recorded.
type recordedLoop struct {
	*toolLoopServer
	file *store.Store
	id   int64
}

func recordLoop(t *testing.T, transport causalTransport, f form, echo func(q, begin *toolloop.Message)) *recordedLoop {
	t.Helper()
	s := newToolLoop(t, f)
	s.echo = echo
	return s.recordOver(t, transport)
}

// recordOver records a conversation with the server.
func (s *toolLoopServer) recordOver(t *testing.T, transport causalTransport) *recordedLoop {
	t.Helper()
	file, err := store.Create(filepath.Join(t.TempDir(), "in.uwc"), store.Options{Profile: profiles.Profile()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	id := transport.record(t, s, file)
	if err := file.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s.ended != 1 {
		t.Fatal("the conversation that is recorded does not end")
	}
	return &recordedLoop{s, file, id}
}

// replay replays it with edits of its first message, and with answers mapped by hand.
func (l *recordedLoop) replay(t *testing.T, edits, answers []string) *Result {
	t.Helper()
	o := settings{Wait: time.Minute, Quiet: 100 * time.Millisecond, Timeout: time.Minute}
	o.Roots = (&testServer{Server: l.Server}).roots()
	for _, text := range edits {
		e, err := edit.Parse("set", text)
		if err != nil {
			t.Fatal(err)
		}
		o.Edits = append(o.Edits, e)
	}
	for _, text := range answers {
		a, err := live.ParseAnswer(text)
		if err != nil {
			t.Fatal(err)
		}
		o.Answers = append(o.Answers, a)
	}
	p, err := newPlan(t.Context(), l.file, l.id, o)
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Send(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// formNamed is one of the forms.
func formNamed(t *testing.T, name string) form {
	t.Helper()
	all := causalForms()
	i := slices.IndexFunc(all, func(f form) bool { return f.name == name })
	if i < 0 {
		t.Fatalf("there is no form %q", name)
	}
	return all[i]
}

// A server repeats an edited value beside the identifiers that it issues.
func TestEchoOfAnEdit(t *testing.T) {
	for name, echo := range map[string]func(q, begin *toolloop.Message){
		"as it is":       func(q, b *toolloop.Message) { q.Content = b.Content },
		"in a text":      func(q, b *toolloop.Message) { q.Content = "The user asked: " + b.Content + "\nGo on." },
		"a part of it":   func(q, b *toolloop.Message) { q.Content = "report: " + strings.Fields(b.Content)[3] },
		"in JSON":        func(q, b *toolloop.Message) { q.Content = fmt.Sprintf(`{"prompt":%q,"n":1}`, b.Content) },
		"in upper case":  func(q, b *toolloop.Message) { q.Content = strings.ToUpper(b.Content) },
		"its length":     func(q, b *toolloop.Message) { q.Call = &toolloop.Call{Counter: uint64(len(b.Content))} },
		"its hash":       func(q, b *toolloop.Message) { h := sha256.Sum256([]byte(b.Content)); q.Packed = h[:] },
		"in gzip":        func(q, b *toolloop.Message) { q.Packed = packedIn("gzip", fmt.Sprintf(`{"prompt":%q}`, b.Content)) },
		"in a list item": func(q, b *toolloop.Message) { q.List = []string{"first", b.Content} },
	} {
		for _, transport := range causalTransports()[:2] {
			t.Run(name+"/"+transport.name, func(t *testing.T) {
				t.Parallel()
				l := recordLoop(t, transport, formNamed(t, "uuid"), echo)
				path := map[string]string{"connect proto": "3", "connect JSON": "content"}[transport.name]
				r := l.replay(t, []string{path + `=Please summarise the omega report, "at length"`}, nil)
				if r.Code != "ok" || l.ended != 2 || l.stale+l.wrong > 0 || len(r.Stale) > 0 {
					t.Errorf("%s %s %s %q; %d ended, %d stale, %d wrong", r.Comparison, r.Code, r.Message, r.Concluded, l.ended, l.stale, l.wrong)
				}
			})
		}
	}
}

// What a server makes of an edit otherwise ends the replay: nothing more is sent, and the
// result names the values that would be stale. An answer by hand maps them.
func TestUnansweredEdit(t *testing.T) {
	reversed := func(q, b *toolloop.Message) {
		r := []rune(b.Content)
		slices.Reverse(r)
		q.Content = string(r)
	}
	for _, transport := range causalTransports() {
		t.Run(transport.name, func(t *testing.T) {
			t.Parallel()
			l := recordLoop(t, transport, formNamed(t, "uuid"), reversed)
			content, text := "3", "4"
			if strings.HasSuffix(transport.name, "JSON") {
				content, text = "content", "text"
			}
			got := l.got
			edits := []string{content + "=Please read omega"}
			r := l.replay(t, edits, nil)
			if r.Code != "aborted" || r.Origin != FromLocal || !strings.Contains(r.Message, "the capture contains no answer") {
				t.Errorf("%s %s %s %q", r.Comparison, r.Origin, r.Code, r.Message)
			}
			l.awaitMessage(t, got+1)
			time.Sleep(200 * time.Millisecond) // more would have come
			l.mu.Lock()
			if l.got != got+1 || l.stale+l.wrong > 0 {
				t.Errorf("the server got %d messages, not only the first; %d stale", l.got-got, l.stale)
			}
			l.mu.Unlock()
			if len(r.Stale) == 0 {
				t.Fatalf("no value is reported as stale; %q", r.Concluded)
			}
			s := r.Stale[0]
			if s.Frame != 1 || s.Path != text || s.Issued != "down/0" || s.IssuedPath != text ||
				!strings.Contains(s.Reason, content+` is "agemo daer esaelP" instead of "troper ahpla`) {
				t.Errorf("%+v", s)
			}

			// By hand, of all frames or of each.
			for _, answers := range [][]string{{text + "=@down/" + text}, {
				"@1 " + text + "=@down/0/" + text, "@2 " + text + "=@down/1/" + text, "@3 " + text + "=@down/2/" + text,
				"@4 " + text + "=@down/3/" + text, "@5 " + text + "=@down/4/" + text, "@6 " + text + "=@down/5/" + text,
			}} {
				ended := l.ended
				if r := l.replay(t, edits, answers); r.Code != "ok" || l.ended != ended+1 || l.stale+l.wrong > 0 {
					t.Errorf("by hand: %s %s %s %q; %d stale", r.Comparison, r.Code, r.Message, r.Concluded, l.stale)
				}
			}
		})
	}
}

func TestAnswerErrors(t *testing.T) {
	for _, text := range []string{"", "4", "4=x", "4=@up/4", "=@down/4", "4=@down/", "4=@down/x/4", "@x 4=@down/4", "4=@down/4 5"} {
		if a, err := live.ParseAnswer(text); err == nil || !strings.Contains(err.Error(), "--answer") {
			t.Errorf("%q: %v, %v", text, a, err)
		}
	}
	l := recordLoop(t, causalTransports()[0], formNamed(t, "uuid"), nil)
	for text, want := range map[string]string{
		"9=@down/4":       "the recorded client frame 6 has no field 9",
		"@77 4=@down/4":   "client frame 77 does not exist",
		"4=@down/13":      "no server frame with a field 13",
		"@2 4=@down/55/4": "no server frame 55",
	} {
		a, err := live.ParseAnswer(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := newPlan(t.Context(), l.file, l.id, settings{Answers: []live.Answer{a}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
