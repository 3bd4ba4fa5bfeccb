package replay

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/fieldpath"
	"unwire/decode/transcript/ident"
	"unwire/decode/wire"
	"unwire/replay/standin"
)

// toolLoop is a turn with tools one by one and at once, blobs and their hashes.
const toolLoop = `{"v":1,"scatter_ids":true,"fresh_ids":true,"turns":[{"steps":[
	{"kv_set":{"as":"a","json":{"role":"system","content":"first ${prompt}"}}},
	{"thinking":"Let me see.","split":[4]},
	{"tool":{"name":"read","args":{"path":"one.go"},"require":"success"}},
	{"tools":{"shuffle":SHUFFLE,"calls":[
		{"name":"read","args":{"path":"two.go"},"as":"two","require":"success"},
		{"name":"read","args":{"path":"three.go"},"as":"three","require":"success"},
		{"name":"read","args":{"path":"four.go"},"require":"success"}]}},
	{"kv_set":{"as":"b","json":{"role":"user","content":"second"}}},
	{"kv_get":{"blob":"b"}},{"kv_get":{"blob":"a"}},
	{"text":"${two.success.total_lines} and ${three.success.total_lines}"},
	{"turn_ended":{}}]}]}`

// order lists the messages of one side, by what they are.
func order(ex *decode.Exchange, dir captures.Direction) (list []string) {
	for i := range ex.Frames {
		f := &ex.Frames[i]
		if f.Dir != dir || f.End != nil || len(f.Data) == 0 || f.Dir == captures.Up && string(f.Data) == "\x3a\x00" || f.Tree == nil {
			continue
		}
		var top []string
		for c := range f.Tree.Children(0) {
			if n := f.Tree.Node(c); n.Type == wire.Len || n.Type == wire.StartGroup {
				top = append(top, strconv.FormatUint(n.Number, 10))
			}
		}
		slices.Sort(top)
		list = append(list, strings.Join(slices.Compact(top), ","))
	}
	return list
}

// issuedIn are the identifiers of a capture's server, as they are in its frames.
func issuedIn(ex *decode.Exchange) map[string]bool {
	ids := map[string]bool{}
	for i := range ex.Frames {
		f := &ex.Frames[i]
		if f.Dir == captures.Up || f.Tree == nil {
			continue
		}
		for c := range f.Tree.Children(0) {
			addIdentifiers(ids, f.Tree, c)
		}
	}
	return ids
}

// addIdentifiers adds the identifiers in a field to ids: those in its text, and in
// the text that its base64 stands for.
func addIdentifiers(ids map[string]bool, t *wire.Tree, field int32) {
	for c := range t.Children(field) {
		addIdentifiers(ids, t, c)
	}
	if t.Node(field).Type != wire.Len {
		return
	}
	value := string(t.Payload(field))
	for _, w := range wordsIn(value) {
		if c := ident.Of(w); c != "" && c != ident.Time {
			ids[w] = true
		}
		if b, err := base64.StdEncoding.DecodeString(w); err == nil {
			for _, w := range wordsIn(string(b)) {
				if c := ident.Of(w); c != "" && c != ident.Time {
					ids[w] = true
				}
			}
		}
	}
}

// wordPattern matches a run of letters, digits and the signs of base64.
var wordPattern = regexp.MustCompile(`[A-Za-z0-9_+/=.-]+`)

// wordsIn lists the words of a text and the identifiers that their signs part.
func wordsIn(s string) (words []string) {
	for _, w := range wordPattern.FindAllString(s, -1) {
		words = append(words, w)
		words = append(words, strings.FieldsFunc(w, func(r rune) bool { return strings.ContainsRune("/+=.", r) })...)
	}
	return words
}

func TestToolLoop(t *testing.T) {
	for _, shuffle := range []string{"false", "true"} {
		t.Run("shuffled "+shuffle, func(t *testing.T) {
			t.Parallel()
			a := newAgent(t, standin.Options{Script: []byte(strings.Replace(toolLoop, "SHUFFLE", shuffle, 1))})
			a.LinesOf = func(path string) int { return len(path) }
			id := a.Turn("Look at the files")
			was, err := decode.Decode(t.Context(), a.Store, id, decode.Options{})
			if err != nil {
				t.Fatal(err)
			}
			stale := issuedIn(was)
			if len(stale) == 0 {
				t.Fatal("the capture has no ids")
			}
			for range 3 {
				p := a.plan(id)
				r, err := p.Send(t.Context(), a.Store)
				if err != nil {
					t.Fatal(err)
				}
				if r.Code != "ok" || r.Unsent != 0 || shuffle == "false" && (r.Comparison != Same || r.Concluded != nil) {
					t.Fatalf("%s %s %s %v %+v", r.Comparison, r.Code, r.Message, r.Concluded, r.Diff)
				}
				is, err := decode.Decode(t.Context(), a.Store, r.Exchange, decode.Options{})
				if err != nil {
					t.Fatal(err)
				}
				for i := range is.Frames {
					f := &is.Frames[i]
					if f.Dir != captures.Up {
						continue
					}
					for _, word := range wordsIn(string(f.Data)) {
						if stale[word] {
							t.Errorf("up/%d has the stale id %q", f.Seq, word)
						}
					}
				}
				for _, dir := range []captures.Direction{captures.Up, captures.Down} {
					if x, y := order(was, dir), order(is, dir); shuffle == "false" && !slices.Equal(x, y) {
						t.Errorf("order %s\n%q, was\n%q", dir, y, x)
					}
				}
				// Each call was answered as the capture answers these arguments.
				if text := loopAnswer(is); !strings.Contains(text, "6 and 8") {
					t.Errorf("the answer is %q", text)
				}
			}
		})
	}
}

// loopAnswer joins the text of an agent's answer.
func loopAnswer(ex *decode.Exchange) string {
	var b strings.Builder
	for i := range ex.Frames {
		f := &ex.Frames[i]
		if f.Dir == captures.Up || f.Tree == nil {
			continue
		}
		path, _ := fieldpath.ParseNumbers("1.1.1")
		for _, n := range f.Tree.Find(path) {
			b.Write(f.Tree.Payload(n))
		}
	}
	return b.String()
}

func (s *testServer) ask(stream *connect.BidiStream[words, words], question, want string) error {
	if err := stream.Send(wrapperspb.String(question)); err != nil {
		return err
	}
	got, err := stream.Receive()
	if err != nil {
		return err
	}
	if got.GetValue() != want {
		return connect.NewError(connect.CodeFailedPrecondition, fmt.Errorf("%q is not %q", got.GetValue(), want))
	}
	return nil
}

// carried are the ways in which a client may send a value back; each is tried
// on ids of several forms.
var carried = map[string]func(string) string{
	"json": func(id string) string { return `{"result":{"list":[1,{"id":"` + id + `"}],"ok":true}}` },
	"json twice": func(id string) string {
		b, _ := json.Marshal(`{"id":"` + id + `"}`)
		return `{"body":` + string(b) + `}`
	},
	"hex":         func(id string) string { return hex.EncodeToString([]byte(id)) },
	"base64":      func(id string) string { return base64.StdEncoding.EncodeToString([]byte(id)) },
	"base64url":   func(id string) string { return base64.RawURLEncoding.EncodeToString([]byte(id)) },
	"text":        func(id string) string { return "the call " + id + " has ended, see /logs/" + id + ".txt" },
	"hash":        func(id string) string { s := sha256.Sum256([]byte(id)); return hex.EncodeToString(s[:]) },
	"hash base64": func(id string) string { s := sha256.Sum256([]byte(id)); return base64.StdEncoding.EncodeToString(s[:]) },
	"upper case":  strings.ToUpper,
}

func (s *testServer) carry(_ context.Context, stream *connect.BidiStream[words, words]) error {
	first, err := stream.Receive()
	if err != nil {
		return err
	}
	how := carried[first.GetValue()]
	if how == nil {
		return connect.NewError(connect.CodeInvalidArgument, errors.New(first.GetValue()))
	}
	// The second id parses as a message of numbers, in capital letters and in small ones.
	like := "9aa48461f1f044c2c710850562357523"
	if s.carried.Add(1) > 1 {
		like = randomHex(16)
	}
	for _, id := range []string{randomHex(16), like, "toolu_" + randomHex(12), uuidOf(randomHex(16))} {
		if err := s.ask(stream, id, how(id)); err != nil {
			return err
		}
		// As one of several values of a JSON text.
		if err := s.ask(stream, `{"cursor":"`+id+`","more":true}`, how(id)); err != nil {
			return err
		}
	}
	return nil
}

func uuidOf(h string) string {
	return h[:8] + "-" + h[8:12] + "-4" + h[13:16] + "-8" + h[17:20] + "-" + h[20:]
}

func TestIssuedValuesAreFoundInside(t *testing.T) {
	for name, how := range carried {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			id := converse(l, "Carry", name, func(q string) string {
				var inside struct{ Cursor string }
				if json.Unmarshal([]byte(q), &inside) == nil {
					q = inside.Cursor
				}
				return how(q)
			})
			for range 2 {
				l.expect(l.replay(id, l.options()), Same, FromServer, "ok")
			}
		})
	}
}

// converse records a call in which the client answers each frame.
func converse(l *lab, method, first string, answer func(string) string) int64 {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), time.Minute)
	defer cancel()
	stream := connect.NewClient[words, words](l.http, l.server.URL+"/test.v1.Test/"+method).CallBidiStream(ctx)
	if err := stream.Send(wrapperspb.String(first)); err != nil {
		l.Fatal(err)
	}
	for {
		m, err := stream.Receive()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			l.Fatal(err)
		}
		if err := stream.Send(wrapperspb.String(answer(m.GetValue()))); err != nil && !errors.Is(err, io.EOF) {
			l.Fatal(err)
		}
	}
	_, _ = stream.CloseRequest(), stream.CloseResponse()
	return l.recorded()
}

// Faults of a server that asks a client: read(NAME) with an id.
func (s *testServer) quiz(_ context.Context, stream *connect.BidiStream[words, words]) error {
	if _, err := stream.Receive(); err != nil {
		return err
	}
	mode, _ := s.answer.Load().(string)
	names := []string{"alpha", "beta", "gamma"}
	switch mode {
	case "early":
		names = names[:1]
	case "more":
		names = append(names, "beta")
	case "other":
		names = append(names, "delta")
	case "reversed":
		slices.Reverse(names)
	}
	for i, name := range names {
		if mode == "reset" && i == 1 {
			panic("reset") // net/http resets the stream
		}
		if mode == "hang" && i == 1 {
			_, err := stream.Receive()
			return err
		}
		id := randomHex(12)
		if err := s.ask(stream, `{"id":"`+id+`","read":"`+name+`"}`, `{"for":"`+id+`","content":"this is `+name+`"}`); err != nil {
			return err
		}
	}
	return nil
}

func TestFaultsOfAToolLoop(t *testing.T) {
	l := newLab(t)
	id := converse(l, "Quiz", "begin", func(q string) string {
		var v struct{ ID, Read string }
		if err := json.Unmarshal([]byte(q), &v); err != nil {
			t.Error(err)
		}
		return `{"for":"` + v.ID + `","content":"this is ` + v.Read + `"}`
	})
	for _, c := range []struct {
		mode       string
		comparison Comparison
		origin     Origin
		code       string
		says       string
	}{
		{"", Same, FromServer, "ok", ""},
		{"early", Differs, FromServer, "ok", "the server ended the call before it sent all frames that the client answers, so unwire did not send 2 client frames"},
		{"more", Differs, FromServer, "ok", "so replay sent the answer to server frame 1 again"},
		{"other", Differs, FromLocal, "aborted", "the capture contains no answer to a request that the server sent in the stream: server frame 3"},
		{"reversed", Differs, FromServer, "ok", "the server asks its questions in a different order"},
		{"reset", Differs, FromLocal, "unavailable", ""},
		{"hang", Differs, FromLocal, "deadline_exceeded", "server did not send a frame that corresponds to server frame 1"},
	} {
		t.Run("server "+c.mode, func(t *testing.T) {
			l.TB = t
			l.server.answer.Store(c.mode)
			o := l.options()
			o.Wait, o.Quiet, o.Timeout = time.Minute, 100*time.Millisecond, time.Minute
			if c.mode == "hang" {
				o.Wait = 700 * time.Millisecond
			}
			r := l.replay(id, o)
			l.expect(r, c.comparison, c.origin, c.code)
			if all := r.Message + "\n" + strings.Join(r.Concluded, "\n"); !strings.Contains(all, c.says) {
				t.Errorf("it says %q, not %q", all, c.says)
			}
		})
	}
}

// A client's heartbeats run by the clock, as long as the server takes.
func TestHeartbeatsRunByTheClock(t *testing.T) {
	t.Parallel()
	a := newAgent(t, standin.Options{Script: []byte(`{"v":1,"turns":[{"steps":[{"tool":{"name":"read","args":{"path":"a"}}},{"wait":{"ms":900,"heartbeat_every_ms":100}},{"text":"done"},{"turn_ended":{}}]}]}`)})
	id := a.Turn("x")
	// the shortest time between two heartbeats
	const interval = 250 * time.Millisecond
	start := time.Now()
	r := a.replay(id)
	if most := int(time.Since(start)/interval) + 1; r.Comparison != Same || r.Beats < 2 || r.Beats > most {
		t.Errorf("%s %s %s, %d heartbeats, %v", r.Comparison, r.Code, r.Message, r.Beats, r.Concluded)
	}
}

// A tool call with other arguments than any captured one has no answer, though it
// is the only one of its kind; the same call once more has.
func TestAnotherCallHasNoAnswer(t *testing.T) {
	script := func(paths ...string) standin.Options {
		steps := `{"kv_set":{"as":"a","json":{"role":"system","content":"be brief"}}}`
		for _, path := range paths {
			steps += fmt.Sprintf(`,{"tool":{"name":"read","args":{"path":%q}}}`, path)
		}
		return standin.Options{Script: []byte(`{"v":1,"turns":[{"steps":[` + steps + `,{"turn_ended":{}}]}]}`)}
	}
	captured := newAgent(t, script("src/one.go"))
	id := captured.Turn("read it")
	for _, c := range []struct {
		paths []string
		code  string
		says  string
	}{
		{[]string{"src/one.go", "src/two.go"}, "aborted", `(2.7.1="src/two.go"`},
		{[]string{"src/two.go"}, "aborted", "the capture contains no answer to a request that the server sent in the stream"},
		{[]string{"src/one.go", "src/one.go"}, "ok", "the server repeated the question"},
	} {
		live := newAgent(t, script(c.paths...))
		o := captured.settings()
		o.To, o.Roots = mustURL(live.Server.URL()), live.Roots
		p, err := newPlan(t.Context(), captured.Store, id, o)
		if err != nil {
			t.Fatal(err)
		}
		r, err := p.Send(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if said := r.Message + strings.Join(r.Concluded, " "); r.Code != c.code || !strings.Contains(said, c.says) {
			t.Errorf("%v: %s %q, want %s %q", c.paths, r.Code, said, c.code, c.says)
		}
	}
}

// The server may be done before the client's last frame has all gone: its start is
// in the capture, and would swallow whatever was sent behind it.
func TestCutFrameIsNotSent(t *testing.T) {
	l := newLab(t)
	whole := converse(l, "Quiz", "begin", func(q string) string {
		var v struct{ ID, Read string }
		if err := json.Unmarshal([]byte(q), &v); err != nil {
			t.Error(err)
		}
		return `{"for":"` + v.ID + `","content":"this is ` + v.Read + `"}`
	})
	ex, err := l.store.Exchange(t.Context(), whole)
	if err != nil {
		t.Fatal(err)
	}
	var chunks []captures.Chunk
	last := 0
	for c, err := range l.store.Chunks(t.Context(), whole, 0) {
		if err != nil {
			t.Fatal(err)
		}
		c.Data = bytes.Clone(c.Data)
		if chunks = append(chunks, c); c.Dir == captures.Up && len(c.Data) > 0 {
			last = len(chunks) - 1
		}
	}
	rec, err := l.store.Begin(captures.Exchange{Method: ex.Method, URL: ex.URL, HTTP: ex.HTTP, RequestHeaders: ex.RequestHeaders, Source: "proxy"})
	if err != nil {
		t.Fatal(err)
	}
	rec.Response(ex.Status, ex.ResponseHeaders)
	for i, c := range chunks {
		if i == last {
			c.Data = c.Data[:len(c.Data)-1]
		}
		rec.ChunkAt(c.Dir, c.T, c.Data)
	}
	rec.End(captures.Complete, "")
	if err := l.store.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	o := l.options()
	o.Wait, o.Quiet, o.Timeout = 700*time.Millisecond, 100*time.Millisecond, 5*time.Second
	p := l.plan(rec.ID(), o)
	if len(p.shown.Frames) != 3 || len(p.shown.Warnings) != 1 || !strings.Contains(p.shown.Warnings[0], "client frame 3 was cut off after") {
		t.Errorf("%d frames, %q", len(p.shown.Frames), p.shown.Warnings)
	}
	r := l.replay(rec.ID(), o)
	l.expect(r, Differs, FromLocal, "aborted")
	if r.Sent != 3 || !strings.Contains(r.Message, "the capture contains no answer to a request that the server sent in the stream: server frame 2") {
		t.Errorf("%d sent: %s", r.Sent, r.Message)
	}
}
