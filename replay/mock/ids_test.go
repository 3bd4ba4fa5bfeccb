package mock

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/structpb"

	"unwire/mitm"
)

// noteServer is a server with state: it stores notes under ids that the server or the client generates, and counts how
// often each one was read.
func noteServer() http.Handler {
	var mu sync.Mutex
	texts, reads := map[string]string{}, map[string]int{}
	mux := http.NewServeMux()
	handle := func(name string, answer func(in map[string]any) (map[string]any, error)) {
		mux.Handle(service+name, connect.NewUnaryHandler(service+name, func(_ context.Context, r *connect.Request[structpb.Struct]) (*connect.Response[structpb.Struct], error) {
			mu.Lock()
			defer mu.Unlock()
			out, err := answer(r.Msg.AsMap())
			if err != nil {
				return nil, err
			}
			m, err := structpb.NewStruct(out)
			return connect.NewResponse(m), err
		}))
	}
	handle("Create", func(in map[string]any) (map[string]any, error) {
		id, ok := in["id"].(string)
		if !ok {
			id = newID()
		}
		texts[id] = in["text"].(string)
		return map[string]any{"id": id}, nil
	})
	handle("Read", func(in map[string]any) (map[string]any, error) {
		id := in["id"].(string)
		reads[id]++
		return map[string]any{"id": id, "text": texts[id], "reads": reads[id]}, nil
	})
	handle("Remove", func(in map[string]any) (map[string]any, error) {
		id := in["id"].(string)
		err := connect.NewError(connect.CodeFailedPrecondition, fmt.Errorf("note %s is open", id))
		detail, _ := connect.NewErrorDetail(message(id, map[string]any{"text": texts[id]})) // a valid message
		err.AddDetail(detail)
		err.Meta().Set("X-Note", "note "+id)
		return nil, err
	})
	mux.HandleFunc("GET /notes/{id}", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		w.Header().Set("X-Note", r.PathValue("id"))
		_, _ = io.WriteString(w, texts[r.PathValue("id")])
	})
	mux.HandleFunc("GET /current", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = io.WriteString(w, texts[r.Header.Get("X-Note")])
	})
	return mux
}

// A noteClient makes calls to a noteServer, and prints the answers without ids.
type noteClient struct {
	t    testing.TB
	c    *http.Client
	base string
	o    []connect.ClientOption
	// ids are the notes' ids by their text.
	ids map[string]string
	out strings.Builder
}

// call makes a call, and returns the answer.
func (n *noteClient) call(name string, in map[string]any) map[string]any {
	m, err := structpb.NewStruct(in)
	if err != nil {
		n.t.Fatal(err)
	}
	res, err := connect.NewClient[structpb.Struct, structpb.Struct](n.c, n.base+service+name, n.o...).CallUnary(n.t.Context(), connect.NewRequest(m))
	if err != nil {
		return map[string]any{"error": err}
	}
	return res.Msg.AsMap()
}

// create stores a note; own means that the client generates its id.
func (n *noteClient) create(text string, own bool) {
	in := map[string]any{"text": text}
	if own {
		in["id"] = newID()
	}
	out := n.call("Create", in)
	id, _ := out["id"].(string)
	if own && id != in["id"] {
		n.t.Errorf("the note %s has the id %v, want %v", text, out, in)
	}
	n.ids[text] = id
}

// read prints how often a note was read before, under the id that it has got.
func (n *noteClient) read(text string) {
	out := n.call("Read", map[string]any{"id": n.ids[text]})
	if out["id"] != n.ids[text] || out["text"] != text {
		n.t.Errorf("the note %s, %s, is read as %v", text, n.ids[text], out)
	}
	fmt.Fprintf(&n.out, "%s %v\n", text, out["reads"])
}

// remove tries to remove a note, which fails with details.
func (n *noteClient) remove(text string) {
	out := n.call("Remove", map[string]any{"id": n.ids[text]})
	var failed *connect.Error
	if err, _ := out["error"].(error); err == nil || !asConnect(err, &failed) {
		n.t.Errorf("removing %s: %v", text, out)
		return
	}
	detail := "none"
	if list := failed.Details(); len(list) == 1 {
		if m, err := list[0].Value(); err == nil {
			detail = show(m.(*structpb.Struct), n.ids[text])
		}
	}
	fmt.Fprintf(&n.out, "%s %s %s %s", failed.Code(), strings.ReplaceAll(failed.Message(), n.ids[text], "ID"), strings.ReplaceAll(failed.Meta().Get("X-Note"), n.ids[text], "ID"), detail)
}

// get prints a note over plain HTTP, with the id in the path, and in a header.
func (n *noteClient) get(text string) {
	for _, path := range []string{"/notes/" + n.ids[text], "/current"} {
		r, err := http.NewRequestWithContext(n.t.Context(), http.MethodGet, n.base+path, nil)
		if err != nil {
			n.t.Fatal(err)
		}
		r.Header.Set("X-Note", n.ids[text])
		res, err := n.c.Do(r)
		if err != nil {
			n.t.Fatal(err)
		}
		b, _ := io.ReadAll(res.Body) // a broken body differs
		_ = res.Body.Close()
		if string(b) != text || strings.HasPrefix(path, "/notes") && res.Header.Get("X-Note") != n.ids[text] {
			n.t.Errorf("GET %s of %s, %s: %q with %q", path, text, n.ids[text], b, res.Header.Get("X-Note"))
		}
	}
}

// asConnect is errors.As for connect.Error.
func asConnect(err error, to **connect.Error) bool {
	e, ok := err.(*connect.Error) //nolint:errorlint // the client returns it
	*to = e
	return ok
}

// newNoteClient makes a client.
func (f *fixture) newNoteClient(addr string, o ...connect.ClientOption) *noteClient {
	return &noteClient{t: f.t, c: f.httpClient("2", true), base: "https://" + addr, o: o, ids: map[string]string{}}
}

// TestIDsAcrossExchanges records notes under ids of the server and of the client, and reads them from the mock in
// another order: each id leads to its own note, with its own count.
func TestIDsAcrossExchanges(t *testing.T) {
	t.Parallel()
	for name, o := range map[string][]connect.ClientOption{"connect": nil, "json": {connect.WithProtoJSON()}, "grpc": {connect.WithGRPC()}} {
		for _, own := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, own ids %t", name, own), func(t *testing.T) {
				t.Parallel()
				f := newFixture(t)
				session := func(addr string, texts []string) string {
					n := f.newNoteClient(addr, o...)
					for _, text := range texts {
						n.create(text, own)
					}
					for range 3 {
						for _, text := range texts {
							n.read(text)
						}
					}
					for _, text := range texts {
						n.remove(text)
						n.get(text)
					}
					lines := strings.Split(n.out.String(), "\n")
					slices.Sort(lines)
					return strings.Join(lines, "\n")
				}
				want := ""
				f.record(noteServer(), mitm.Options{}, func(addr string) { want = session(addr, []string{"first", "second", "third"}) })
				if !strings.Contains(want, "third 3") || !strings.Contains(want, "note ID is open note ID {") {
					t.Fatalf("recorded %s", want)
				}
				_, report := f.mock(Options{}, func(addr string) {
					if got := session(addr, []string{"third", "first", "second"}); got != want {
						t.Errorf("from the mock:\n%s\nwant\n%s", got, want)
					}
				})
				for id, n := range report.Used {
					if n != 1 {
						t.Errorf("exchange %d answered %d times", id, n)
					}
				}
				if len(report.Unused) > 0 || report.Refused > 0 {
					t.Errorf("%+v", report)
				}
			})
		}
	}
}

// TestTwoClients has two clients at the same time, which play the same recorded session with ids of their own: each
// gets the recorded answers in order.
func TestTwoClients(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.record(noteServer(), mitm.Options{}, func(addr string) {
		n := f.newNoteClient(addr)
		n.create("only", true)
		for range 3 {
			n.read("only")
		}
	})
	f.mock(Options{Repeat: Last}, func(addr string) {
		a, b := f.newNoteClient(addr), f.newNoteClient(addr)
		a.create("only", true)
		a.read("only")
		b.create("only", true)
		b.read("only")
		a.read("only")
		for range 3 {
			b.read("only")
		}
		a.read("only")
		if got := a.out.String(); got != "only 1\nonly 2\nonly 3\n" {
			t.Errorf("the first client got %s", got)
		}
		if got := b.out.String(); got != "only 1\nonly 2\nonly 3\nonly 3\n" {
			t.Errorf("the second client got %s", got)
		}
	})
}

// TestNewIDsAtOnce: requests with new identifiers that arrive at the same moment get different recorded ones.
func TestNewIDsAtOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const notes = 40
	f.record(noteServer(), mitm.Options{}, func(addr string) {
		n := f.newNoteClient(addr)
		for range notes {
			n.create("same", true)
			n.read("same")
		}
	})
	answers, _ := f.mock(Options{}, func(addr string) {
		n := f.newNoteClient(addr)
		var all sync.WaitGroup
		for i := range notes {
			all.Go(func() {
				if i%2 == 0 {
					n.call("Create", map[string]any{"id": newID(), "text": "same"})
				} else {
					n.call("Read", map[string]any{"id": newID()})
				}
			})
		}
		all.Wait()
	})
	// Each note was recorded as two exchanges.
	by := map[int64]int{}
	for _, a := range answers {
		by[(a.Exchange+1)/2]++
	}
	if len(answers) != notes || len(by) != notes {
		t.Errorf("%d requests took the identifiers of %d recorded notes: %v", len(answers), len(by), by)
	}
}
