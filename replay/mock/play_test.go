package mock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/structpb"

	"unwire/captures"
	"unwire/captures/need"
	"unwire/captures/store"
	"unwire/decode"
	"unwire/mitm"
	"unwire/mitm/rules"
)

// webServer is a plain HTTP server with JSON, a download, a redirection, server-sent events and errors.
func webServer() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /users/{id}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Request-Id", r.Header.Get("X-Request-Id"))
		fmt.Fprintf(w, `{"id":%q,"lang":%q,"trace":%q}`, r.PathValue("id"), r.URL.Query().Get("lang"), r.Header.Get("X-Request-Id"))
	})
	mux.HandleFunc("POST /notes", func(w http.ResponseWriter, r *http.Request) {
		var note struct{ Ref, Text string }
		if json.NewDecoder(r.Body).Decode(&note) != nil || note.Text == "" {
			http.Error(w, "no text", http.StatusUnprocessableEntity)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"ref":%q,"length":%d}`, note.Ref, len(note.Text))
	})
	mux.HandleFunc("GET /events", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for n := range 3 {
			fmt.Fprintf(w, ": keep-alive\n\nevent: tick\nid: %d\ndata: {\"n\":%d,\"topic\":%q}\n\n", n, n, r.URL.Query().Get("topic"))
			w.(http.Flusher).Flush()
		}
	})
	mux.HandleFunc("GET /old", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Query().Get("base")+"/users/7", http.StatusFound)
	})
	mux.HandleFunc("GET /file", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = w.Write([]byte(strings.Repeat("\x00\xffbytes", 100_000)))
	})
	mux.HandleFunc("GET /cut", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "half")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	mux.HandleFunc("GET /turn", func() http.HandlerFunc {
		n := 0
		return func(w http.ResponseWriter, _ *http.Request) {
			n++
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"state":%q}`, []string{"pending", "pending", "done"}[min(n, 3)-1])
		}
	}())
	return mux
}

// TestCurl has curl as the client, over both versions of HTTP.
func TestCurl(t *testing.T) {
	t.Parallel()
	curl := need.Curl(t, "HTTP2")
	for _, version := range []string{"--http1.1", "--http2", "--http2-prior-knowledge"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.same(webServer(), func(addr string) string {
				id := newID()
				scheme, out := "https://", ""
				if version == "--http2-prior-knowledge" {
					scheme = "http://"
				}
				run := func(args ...string) {
					args = append([]string{version, "-sS", "--max-time", "20", "--cacert", f.ca.CertFile, "-w", "\n%{http_code} %{content_type} %{size_download} %header{x-request-id}\n"}, args...)
					b, err := exec.CommandContext(t.Context(), curl, args...).CombinedOutput()
					if args[len(args)-2] == "-I" {
						// net/http writes headers in a random order.
						lines := strings.Split(string(b), "\n")
						slices.Sort(lines)
						b = []byte(strings.Join(lines, "\n"))
					}
					if len(b) > 600 {
						b = b[len(b)-200:]
					}
					out += strings.ReplaceAll(string(b), id, "ID") + fmt.Sprintln(err)
				}
				base := scheme + addr
				run("-H", "X-Request-Id: "+id, base+"/users/7?lang=en")
				run(base + "/users/8?lang=de")
				run("-d", `{"ref":"`+id+`","text":"hello"}`, "-H", "Content-Type: application/json", base+"/notes")
				run("-d", `{}`, "-H", "Content-Type: application/json", base+"/notes")
				run("-N", base+"/events?topic="+id)
				run("-I", base+"/users/7")
				run(base + "/file")
				run(base + "/nowhere")
				run("-L", base+"/old")
				for range 3 {
					run(base + "/turn")
				}
				return strings.ReplaceAll(out, addr, "ADDR")
			})
		})
	}
}

// TestRedirect has a redirection to the recorded server, which must not lead away from the mock.
func TestRedirect(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var origin string
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin = "https://" + r.Host
		w.Header().Set("Location", map[string]string{"/a": origin + "/b?c=d", "/other": "https://example.com/b"}[r.URL.Path])
		w.WriteHeader(http.StatusFound)
	})
	client := func(addr, path string) string {
		res, err := f.httpClient("1.1", false).Transport.RoundTrip(must(http.NewRequest(http.MethodGet, "http://"+addr+path, nil)))
		if err != nil {
			t.Fatal(err)
		}
		return res.Header.Get("Location")
	}
	f.record(handler, mitm.Options{}, func(addr string) { client(addr, "/a"); client(addr, "/other") })
	f.mock(Options{}, func(addr string) {
		if got := client(addr, "/a"); got != "/b?c=d" {
			t.Errorf("%q; the server was %s", got, origin)
		}
		if got := client(addr, "/other"); got != "https://example.com/b" {
			t.Errorf("%q", got)
		}
	})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestRepeat asks more often than was recorded.
func TestRepeat(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	states := func(n int) func(addr string) string {
		return func(addr string) string {
			out := ""
			for range n {
				res, err := f.httpClient("1.1", false).Get("http://" + addr + "/turn")
				if err != nil {
					t.Fatal(err)
				}
				b, _ := io.ReadAll(res.Body) // a broken body differs
				_ = res.Body.Close()
				out += fmt.Sprint(res.StatusCode, strings.Contains(string(b), "done")) + " "
			}
			return out
		}
	}
	f.record(webServer(), mitm.Options{}, func(addr string) { states(3)(addr) })
	for repeat, want := range map[Repeat]string{
		Cycle: "200 false 200 false 200 true 200 false 200 false ",
		Last:  "200 false 200 false 200 true 200 true 200 true ",
		Never: "200 false 200 false 200 true 501 false 501 false ",
	} {
		got := ""
		f.mock(Options{Repeat: repeat}, func(addr string) { got = states(5)(addr) })
		if got != want {
			t.Errorf("%s: %s, want %s", repeat, got, want)
		}
	}
}

// TestEnds checks answers that were cut off by the server, and streams that the client left.
func TestEnds(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"1.1", "2"} {
		f := newFixture(t)
		cut := func(addr string) string {
			res, err := f.httpClient(version, true).Get("https://" + addr + "/cut")
			if err != nil {
				return err.Error()
			}
			defer res.Body.Close() //nolint:errcheck // broken anyway
			b, err := io.ReadAll(res.Body)
			return fmt.Sprint(string(b), err != nil)
		}
		f.record(webServer(), mitm.Options{}, func(addr string) {
			if got := cut(addr); got != "halftrue" {
				t.Errorf("%s: %s", version, got)
			}
		})
		f.mock(Options{}, func(addr string) {
			if got := cut(addr); got != "halftrue" {
				t.Errorf("from the mock, %s: %s", version, got)
			}
		})
	}

	// A stream that the recorded client left stays open until the client leaves again.
	f := newFixture(t)
	leave := func(addr string) string {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s := connect.NewClient[structpb.Struct, structpb.Struct](f.httpClient("2", true), "https://"+addr+service+"Talk").CallBidiStream(ctx)
		_ = s.Send(message("a", map[string]any{"round": 1})) // the answer tells
		m, err := s.Receive()
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond) // so that a mock that ends the stream would have
		cancel()
		_, err = s.Receive()
		return show(m, "a") + connect.CodeOf(err).String()
	}
	want, got := "", ""
	f.record(sessionServer(), mitm.Options{}, func(addr string) { want = leave(addr) })
	f.mock(Options{}, func(addr string) { got = leave(addr) })
	if got != want || !strings.Contains(want, "canceled") {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestForwarded records with a rule that edits an answer: the mock sends what the client received.
func TestForwarded(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	file := filepath.Join(t.TempDir(), "rules.yaml")
	err := os.WriteFile(file, []byte("rules:\n  - name: up\n    match: path:text dir:up\n    set: text=rewritten\n  - name: edit\n    match: path:lang dir:down\n    set: lang=xx\n  - name: note\n    match: path:length dir:down\n    set: length=99\n"), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	set, err := rules.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	client := func(addr string) string {
		c := f.httpClient("1.1", false)
		out := ""
		res, err := c.Get("http://" + addr + "/users/7?lang=en")
		if err == nil {
			var b []byte
			b, err = io.ReadAll(res.Body)
			out += string(b)
		}
		if err != nil {
			t.Fatal(err)
		}
		res, err = c.Post("http://"+addr+"/notes", "application/json", strings.NewReader(`{"ref":"k","text":"hello"}`))
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(res.Body) // a broken body differs
		return out + string(b)
	}
	want := ""
	f.record(webServer(), mitm.Options{Rewrite: rules.New(set, rules.Options{})}, func(addr string) { want = client(addr) })
	if !strings.Contains(want, `"lang":"xx"`) || !strings.Contains(want, "99") {
		t.Fatalf("the rule did nothing: %s", want)
	}
	answers, _ := f.mock(Options{}, func(addr string) {
		if got := client(addr); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
	for _, a := range answers {
		if a.Similarity < 1 {
			t.Errorf("the request was not compared with what the client had sent: %+v", a)
		}
	}
}

// TestRefusals checks that what was not recorded gets an error of the request's protocol with the reason.
func TestRefusals(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.record(sessionServer(), mitm.Options{}, func(addr string) {
		connectSession(t, f.httpClient("2", true), "https://"+addr, true)
	})
	answers, report := f.mock(Options{}, func(addr string) {
		c, base := f.httpClient("2", true), "https://"+addr
		for name, o := range map[string][]connect.ClientOption{"connect": nil, "grpc": {connect.WithGRPC()}, "grpc-web": {connect.WithGRPCWeb()}} {
			_, err := connect.NewClient[structpb.Struct, structpb.Struct](c, base+service+"Nothing", o...).CallUnary(t.Context(), connect.NewRequest(message("a", map[string]any{})))
			if connect.CodeOf(err) != connect.CodeUnimplemented || !strings.Contains(err.Error(), "the capture has no call of "+service+"Nothing") {
				t.Errorf("%s: %v", name, err)
			}
			s := connect.NewClient[structpb.Struct, structpb.Struct](c, base+service+"Nothing", o...).CallBidiStream(t.Context())
			_ = s.Send(message("a", map[string]any{})) // the answer tells
			if _, err := s.Receive(); connect.CodeOf(err) != connect.CodeUnimplemented {
				t.Errorf("%s: %v", name, err)
			}
		}
		_, err := connect.NewClient[structpb.Struct, structpb.Struct](c, base+service+"Unary", connect.WithGRPC()).CallUnary(t.Context(), connect.NewRequest(message("a", map[string]any{})))
		if err == nil || !strings.Contains(err.Error(), "with connect-unary and proto, not with grpc and proto") {
			t.Errorf("another protocol: %v", err)
		}
		_, err = connect.NewClient[structpb.Struct, structpb.Struct](c, base+"/other.v1.Service/Unary").CallUnary(t.Context(), connect.NewRequest(message("a", map[string]any{})))
		if err == nil || !strings.Contains(err.Error(), "it has "+service+"Unary") {
			t.Errorf("without a suggestion: %v", err)
		}
		res, err := c.Get(base + "/web")
		if err != nil || res.StatusCode != http.StatusNotImplemented {
			t.Errorf("%v %v", res, err)
		}
	})
	if report.Refused != 9 || report.Answered != 0 || len(report.Unused) != 5 {
		t.Errorf("%+v", report)
	}
	for _, a := range answers {
		if a.Code != "unimplemented" || a.Reason == "" || a.Exchange != 0 {
			t.Errorf("%+v", a)
		}
	}

	// A request that resembles no recorded one.
	f.mock(Options{MinSimilarity: 0.999}, func(addr string) {
		_, err := connect.NewClient[structpb.Struct, structpb.Struct](f.httpClient("2", true), "https://"+addr+service+"Unary").CallUnary(t.Context(), connect.NewRequest(message("a", map[string]any{"other": 1})))
		if err == nil || !strings.Contains(err.Error(), "is similar enough to the request: the most similar one, exchange") {
			t.Errorf("%v", err)
		}
	})
}

// TestOtherStream has a client that sends fewer frames than were recorded, more of them, and none.
func TestOtherStream(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	talk := func(addr string, rounds int, text string) (got int, err error) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		s := connect.NewClient[structpb.Struct, structpb.Struct](f.httpClient("2", true), "https://"+addr+service+"Talk", connect.WithGRPC()).CallBidiStream(ctx)
		for round := range rounds {
			_ = s.Send(message(newID(), map[string]any{"round": round, "text": text})) // the answer tells
			if _, err := s.Receive(); err != nil {
				return got, err
			}
			got++
		}
		_ = s.CloseRequest() // the answer tells
		for {
			if _, err := s.Receive(); err != nil {
				return got, err
			}
			got++
		}
	}
	f.record(sessionServer(), mitm.Options{}, func(addr string) { _, _ = talk(addr, 6, "as recorded") })
	_, report := f.mock(Options{}, func(addr string) {
		for name, c := range map[string]struct{ rounds, want int }{"the same": {6, 6}, "fewer": {2, 6}, "more": {9, 6}} {
			if got, err := talk(addr, c.rounds, "something else that was not recorded"); got != c.want || !errors.Is(err, io.EOF) {
				t.Errorf("%s: %d frames, %v", name, got, err)
			}
		}
	})
	if report.Answered != 3 {
		t.Errorf("%+v", report)
	}

	// A client that sends nothing for too long.
	f.mock(Options{Wait: 2 * time.Second}, func(addr string) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		s := connect.NewClient[structpb.Struct, structpb.Struct](f.httpClient("2", true), "https://"+addr+service+"Talk", connect.WithGRPC()).CallBidiStream(ctx)
		_ = s.Send(message("a", map[string]any{"round": 0, "text": "as recorded"})) // the answer tells
		_, err := s.Receive()
		if err == nil {
			_, err = s.Receive()
		}
		if connect.CodeOf(err) != connect.CodeDeadlineExceeded || !strings.Contains(err.Error(), "client did not send a frame that corresponds to client frame 1 of the recording") {
			t.Errorf("%v", err)
		}
	})
}

// TestEdit changes messages of answers in each framing: the client gets exactly the change.
func TestEdit(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	client := func(addr string) string {
		c, out := f.httpClient("1.1", false), ""
		for _, path := range []string{"/users/7?lang=en", "/events?topic=s"} {
			res, err := c.Get("http://" + addr + path)
			if err != nil {
				t.Fatal(err)
			}
			b, _ := io.ReadAll(res.Body) // a broken body differs
			out += string(b)
		}
		return out
	}
	want := ""
	f.record(webServer(), mitm.Options{}, func(addr string) { want = client(addr) })
	want = strings.ReplaceAll(strings.ReplaceAll(want, `"lang":"en"`, `"lang":"longer than before"`), `"n":1`, `"n":1000`)
	f.mock(Options{Edit: func(_ int64, fr *decode.Frame) ([]byte, bool) {
		s := strings.ReplaceAll(strings.ReplaceAll(string(fr.Data), `"lang":"en"`, `"lang":"longer than before"`), `"n":1`, `"n":1000`)
		return []byte(s), s != string(fr.Data)
	}}, func(addr string) {
		if got := client(addr); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	})
}

// TestEmpty has captures that cannot answer anything.
func TestEmpty(t *testing.T) {
	t.Parallel()
	s, err := store.Create(filepath.Join(t.TempDir(), "a.uwc"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // nothing is in it
	rec, err := s.Begin(captures.Exchange{Transport: captures.RawTCP, URL: "tcp://127.0.0.1:1", Started: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	rec.End(captures.Complete, "")
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := New(t.Context(), s, Options{}); err == nil || !strings.Contains(err.Error(), "no HTTP call with an answer") {
		t.Errorf("%v", err)
	}
}
