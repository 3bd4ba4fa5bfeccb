package replay

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protowire"

	"unwire/captures"
	"unwire/decode"
	"unwire/replay/edit"
	"unwire/replay/live"
)

// A raw is a message in bytes: the servers here have no schema, as what is
// replayed has none.
type raw struct{ b []byte }

// A rawCodec has connect pass bytes on.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(m any) ([]byte, error) { return m.(*raw).b, nil }

func (rawCodec) Unmarshal(b []byte, m any) error {
	m.(*raw).b = append([]byte(nil), b...)
	return nil
}

// Fields of a message being written.
func textField(b []byte, n protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), s)
}

func numberField(b []byte, n protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), v)
}

// get is the last field of a number in a message; "" if there is none. Of a
// number it is the digits.
func get(b []byte, path ...protowire.Number) string {
	for i, want := range path {
		found := ""
		for len(b) > 0 {
			n, typ, at := protowire.ConsumeTag(b)
			if at < 0 {
				return ""
			}
			b = b[at:]
			size := protowire.ConsumeFieldValue(n, typ, b)
			if size < 0 {
				return ""
			}
			if n == want {
				if typ == protowire.VarintType {
					v, _ := protowire.ConsumeVarint(b)
					found = fmt.Sprint(v)
				} else if typ == protowire.BytesType {
					v, _ := protowire.ConsumeBytes(b)
					found = string(v)
				}
			}
			b = b[size:]
		}
		if i == len(path)-1 {
			return found
		}
		b = []byte(found)
	}
	return ""
}

// A ledger is an agent's server whose ids stand everywhere but in plain fields:
// a conversation in a response header of an earlier call, a lease in its
// trailer, the run in the stream's own response header, call ids in a message in
// base64, cursors in JSON in a string, acknowledgements as ranges of numbers
// that begin anywhere, and hashes of what it sent.
type ledger struct {
	mu     sync.Mutex
	leases map[string]string // by conversation
	served int               // runs that came to their end
}

func (s *ledger) serve(mux *http.ServeMux) {
	mux.Handle("/loop.v1.Ledger/Open", connect.NewUnaryHandler("/loop.v1.Ledger/Open", s.open, connect.WithCodec(rawCodec{})))
	mux.Handle("/loop.v1.Ledger/Run", connect.NewBidiStreamHandler("/loop.v1.Ledger/Run", s.run, connect.WithCodec(rawCodec{})))
	mux.Handle("/loop.v1.Ledger/Close", connect.NewUnaryHandler("/loop.v1.Ledger/Close", s.close, connect.WithCodec(rawCodec{})))
}

func (s *ledger) open(context.Context, *connect.Request[raw]) (*connect.Response[raw], error) {
	conversation, lease := "conv_"+randomHex(10), randomHex(16)
	s.mu.Lock()
	s.leases[conversation] = lease
	s.mu.Unlock()
	r := connect.NewResponse(&raw{textField(nil, 1, "opened")})
	r.Header().Set("x-conversation", conversation)
	r.Trailer().Set("x-lease", lease)
	return r, nil
}

func (s *ledger) close(_ context.Context, r *connect.Request[raw]) (*connect.Response[raw], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.leases[get(r.Msg.b, 1, 2)]; !ok {
		return nil, connect.NewError(connect.CodeNotFound, errors.New("no such conversation"))
	}
	return connect.NewResponse(&raw{textField(nil, 1, "closed")}), nil
}

// A want is what an answer has to say, and where.
type want struct {
	what, is, want string
}

func check(list ...want) error {
	for _, w := range list {
		if w.is != w.want {
			return connect.NewError(connect.CodeFailedPrecondition, fmt.Errorf("%s: %q is not %q", w.what, w.is, w.want))
		}
	}
	return nil
}

const ledgerCalls = 5

func (s *ledger) run(_ context.Context, stream *connect.BidiStream[raw, raw]) error {
	s.mu.Lock()
	conversation := stream.RequestHeader().Get("x-conversation")
	lease, ok := s.leases[conversation]
	s.mu.Unlock()
	if !ok {
		return connect.NewError(connect.CodeNotFound, fmt.Errorf("no conversation %q", conversation))
	}
	run := randomHex(8) + "-" + randomHex(12)
	stream.ResponseHeader().Set("x-run-id", run)
	first, err := stream.Receive()
	if err != nil {
		return err
	}
	if err := check(want{"lease", get(first.b, 1), lease}, want{"conversation", get(first.b, 3), base64.StdEncoding.EncodeToString([]byte(conversation))}); err != nil {
		return err
	}
	var at [2]byte
	_, _ = rand.Read(at[:])
	seq := 70_000 + uint64(at[0])<<8 + uint64(at[1])
	begin := seq
	for i := range ledgerCalls {
		id := make([]byte, 16)
		blob := make([]byte, 200)
		_, _ = rand.Read(id)
		_, _ = rand.Read(blob)
		cursor := "tok_" + randomHex(12)
		ticket := base64.StdEncoding.EncodeToString(numberField(textField(nil, 1, string(id)), 2, uint64(i)))
		args, _ := json.Marshal(map[string]any{"path": fmt.Sprintf("src/file_%c.go", 'a'+i), "page": map[string]any{"cursor": cursor, "limit": 10}})
		call := textField(numberField(nil, 1, seq), 2, ticket)
		call = textField(textField(textField(call, 3, "read_file"), 4, string(args)), 5, string(blob))
		for _, text := range []string{"Let me ", "look at it."} {
			if err := stream.Send(&raw{textField(nil, 2, text)}); err != nil {
				return err
			}
		}
		if err := stream.Send(&raw{textField(nil, 1, string(call))}); err != nil {
			return err
		}
		m, err := stream.Receive()
		if err != nil {
			return err
		}
		var result struct {
			Next   string
			SHA256 string
			Path   string
		}
		if err := json.Unmarshal([]byte(get(m.b, 1, 4)), &result); err != nil {
			return connect.NewError(connect.CodeInvalidArgument, err)
		}
		sum := sha256.Sum256(blob)
		if err := check(
			want{"run", get(m.b, 1, 1), run},
			want{"ack from", get(m.b, 1, 2, 1), fmt.Sprint(begin)}, want{"ack to", get(m.b, 1, 2, 2), fmt.Sprint(seq)},
			want{"call", get(m.b, 1, 3), hex.EncodeToString(id)}, want{"cursor", result.Next, cursor}, want{"sha256", result.SHA256, base64.StdEncoding.EncodeToString(sum[:])},
		); err != nil {
			return fmt.Errorf("call %d: %w", i, err)
		}
		seq++
	}
	s.mu.Lock()
	s.served++
	s.mu.Unlock()
	return stream.Send(&raw{textField(nil, 3, "done")})
}

// A ledgerClient records a conversation with a ledger.
type ledgerClient struct {
	*lab
	ledger *ledger
}

func newLedger(t *testing.T) *ledgerClient {
	l := newLab(t)
	c := &ledgerClient{lab: l, ledger: &ledger{leases: map[string]string{}}}
	c.ledger.serve(l.server.mux)
	return c
}

func (c *ledgerClient) call(method string) *connect.Client[raw, raw] {
	return connect.NewClient[raw, raw](c.http, c.server.URL+"/loop.v1.Ledger/"+method, connect.WithCodec(rawCodec{}))
}

// talk records Open, Run and Close; it returns their exchanges.
func (c *ledgerClient) talk() (open, run, end int64) {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), time.Minute)
	defer cancel()
	opened, err := c.call("Open").CallUnary(ctx, connect.NewRequest(&raw{textField(nil, 1, "hello")}))
	if err != nil {
		c.Fatal(err)
	}
	open = c.recorded()
	conversation := opened.Header().Get("x-conversation")
	stream := c.call("Run").CallBidiStream(ctx)
	stream.RequestHeader().Set("x-conversation", conversation)
	first := textField(textField(nil, 1, opened.Trailer().Get("x-lease")), 2, "Read the files")
	if err := stream.Send(&raw{textField(first, 3, base64.StdEncoding.EncodeToString([]byte(conversation)))}); err != nil {
		c.Fatal(err)
	}
	begin := ""
	for {
		m, err := stream.Receive()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			c.Fatal(err)
		}
		call := get(m.b, 1)
		if call == "" {
			continue
		}
		var args struct{ Page struct{ Cursor string } }
		if err := json.Unmarshal([]byte(get(m.b, 1, 4)), &args); err != nil {
			c.Fatal(err)
		}
		seq := get(m.b, 1, 1)
		if begin == "" {
			begin = seq
		}
		number := func(s string) (v uint64) { _, _ = fmt.Sscan(s, &v); return v }
		ticket, _ := base64.StdEncoding.DecodeString(get(m.b, 1, 2))
		sum := sha256.Sum256([]byte(get(m.b, 1, 5)))
		result, _ := json.Marshal(map[string]any{"next": args.Page.Cursor, "sha256": base64.StdEncoding.EncodeToString(sum[:]), "lines": 12})
		answer := textField(nil, 1, stream.ResponseHeader().Get("x-run-id"))
		answer = textField(answer, 2, string(numberField(numberField(nil, 1, number(begin)), 2, number(seq))))
		answer = textField(textField(answer, 3, hex.EncodeToString([]byte(get(ticket, 1)))), 4, string(result))
		if err := stream.Send(&raw{textField(nil, 1, string(answer))}); err != nil {
			c.Fatal(err)
		}
	}
	_, _ = stream.CloseRequest(), stream.CloseResponse()
	run = c.recorded()
	if _, err := c.call("Close").CallUnary(ctx, connect.NewRequest(&raw{textField(nil, 1, string(textField(nil, 2, conversation)))})); err != nil {
		c.Fatal(err)
	}
	return open, run, c.recorded()
}

// stale are the words of a capture's server that a replay's client said.
func stale(t *testing.T, was, is *decode.Exchange) (words []string) {
	t.Helper()
	issued := issuedIn(was)
	if len(issued) == 0 {
		t.Fatal("the capture has no ids")
	}
	for i := range is.Frames {
		f := &is.Frames[i]
		if f.Dir != captures.Up {
			continue
		}
		for _, w := range wordsIn(string(f.Data)) {
			if issued[w] && !strings.Contains(w, "read_file") {
				words = append(words, fmt.Sprintf("up/%d %s", f.Seq, w))
			}
		}
	}
	return words
}

// A conversation over three calls whose server has forgotten the captured one:
// what earlier calls issue is found, they are sent first, and no captured id goes
// out.
func TestLedger(t *testing.T) {
	c := newLedger(t)
	open, run, end := c.talk()
	for _, id := range []int64{run, end} {
		first, err := live.Issuers(t.Context(), c.store, id)
		if err != nil || !slices.Equal(first, []int64{open}) {
			t.Fatalf("before %d: %v, %v", id, first, err)
		}
	}
	was, err := decode.Decode(t.Context(), c.store, run, decode.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		c.ledger.leases = map[string]string{}
		c.expect(c.replay(run, c.options()), Rejected, FromServer, "not_found")
		o := c.options()
		o.Issued = &live.IDs{}
		p := c.plan(open, o)
		r, err := p.Send(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		c.expect(r, Same, FromServer, "ok")
		r.learnIDs(o.Issued)
		r = c.replay(run, o)
		c.expect(r, Differs, FromServer, "ok")
		for _, d := range r.Diff {
			if d.Ignored == "" && !strings.HasSuffix(d.Path, " 1.5") { // the blobs are random
				t.Errorf("%s was %v and is %v", d.Path, d.Old, d.New)
			}
		}
		if r.Unsent != 0 || r.Concluded != nil {
			t.Errorf("%v", r.Concluded)
		}
		is := c.answered(r.Exchange)
		if list := stale(t, was, is); len(list) > 0 {
			t.Errorf("stale: %v", list)
		}
		for _, dir := range []captures.Direction{captures.Up, captures.Down} {
			if x, y := order(was, dir), order(is, dir); !slices.Equal(x, y) {
				t.Errorf("order %s\n%q, was\n%q", dir, y, x)
			}
		}
		c.expect(c.replay(end, o), Same, FromServer, "ok")
	}
	if c.ledger.served != 4 {
		t.Errorf("%d runs came to their end", c.ledger.served)
	}
}

// serveShort adds unary methods of the service loop.v1.Short to the server. record calls a method, and returns the number
// of the recorded exchange.
func (c *ledgerClient) serveShort(t *testing.T, methods map[string]func(*raw) (*raw, error)) (record func(method string, b []byte) int64) {
	t.Helper()
	const service = "/loop.v1.Short/"
	for name, serve := range methods {
		c.server.mux.Handle(service+name, connect.NewUnaryHandler(service+name, func(_ context.Context, r *connect.Request[raw]) (*connect.Response[raw], error) {
			m, err := serve(r.Msg)
			if err != nil {
				return nil, err
			}
			return connect.NewResponse(m), nil
		}, connect.WithCodec(rawCodec{})))
	}
	return func(method string, b []byte) int64 {
		client := connect.NewClient[raw, raw](c.http, c.server.URL+service+method, connect.WithCodec(rawCodec{}))
		if _, err := client.CallUnary(t.Context(), connect.NewRequest(&raw{b})); err != nil {
			t.Fatal(err)
		}
		return c.recorded()
	}
}

// A later call repeats a short name that an earlier answer had. If the live answer has another one, the call
// is not sent with the captured name, unless the user chooses one.
func TestShortNameOfAnEarlierAnswer(t *testing.T) {
	c := newLedger(t)
	name, got := "k3f9", ""
	record := c.serveShort(t, map[string]func(*raw) (*raw, error){
		"Open": func(*raw) (*raw, error) { return &raw{textField(textField(nil, 1, name), 2, "opened")}, nil },
		"Read": func(m *raw) (*raw, error) { got = get(m.b, 1); return &raw{textField(nil, 1, "read")}, nil },
	})
	open := record("Open", textField(nil, 1, "hello"))
	read := record("Read", textField(nil, 1, name))
	replayBoth := func(edits ...string) (*Plan, error) {
		o := c.options()
		o.Issued = &live.IDs{}
		r, err := c.plan(open, o).Send(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		r.learnIDs(o.Issued)
		for _, text := range edits {
			e, err := edit.Parse("set", text)
			if err != nil {
				t.Fatal(err)
			}
			o.Edits = append(o.Edits, e)
		}
		return newPlan(t.Context(), c.store, read, o)
	}
	if _, err := replayBoth(); err != nil {
		t.Errorf("the same name: %v", err)
	}
	name = "q7w2"
	if _, err := replayBoth(); !errors.Is(err, live.ErrUncertain) || !strings.Contains(err.Error(), `client frame 0 contains "k3f9" in its field 1`) {
		t.Errorf("another name: %v", err)
	} else if r, ok := Outdated(err); !ok || r.Comparison != Refused || r.Code != "aborted" || r.Message == "" {
		t.Errorf("another name: %+v", r)
	}
	p, err := replayBoth("1=q7w2")
	if err != nil {
		t.Fatal(err)
	}
	if r, err := p.Send(t.Context(), nil); err != nil || r.Code != "ok" || got != "q7w2" {
		t.Errorf("the chosen name: %+v, %v: %q", r, err, got)
	}
}

// A later call that is sent alone repeats a short name and a small number that an earlier answer had. The
// server rejects them, and the result lists them, and no value of the client's own.
func TestValuesSentAsRecorded(t *testing.T) {
	c := newLedger(t)
	name, number := "k3f9", uint64(4711)
	record := c.serveShort(t, map[string]func(*raw) (*raw, error){
		"Open": func(*raw) (*raw, error) { return &raw{numberField(textField(nil, 1, name), 2, number)}, nil },
		"Read": func(m *raw) (*raw, error) {
			if get(m.b, 1) != name || get(m.b, 2) != fmt.Sprint(number) {
				return nil, connect.NewError(connect.CodeNotFound, errors.New("no such name"))
			}
			return &raw{textField(nil, 1, "read")}, nil
		},
	})
	open := record("Open", textField(nil, 1, "hello"))
	read := record("Read", textField(numberField(textField(nil, 1, name), 2, number), 3, "mine"))
	note := func() *Result {
		r := c.replay(read, c.options())
		if err := r.NoteAsRecorded(t.Context(), c.store, read); err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := note(); r.Comparison != Same || r.AsRecorded != nil || r.Concluded != nil {
		t.Errorf("the same values: %s %v %q", r.Comparison, r.AsRecorded, r.Concluded)
	}
	name, number = "q7w2", 1234
	r := note()
	want := []live.RecordedValue{{Value: "k3f9", Path: "1", Exchange: open, FromPath: "1"}, {Value: "4711", Path: "2", Exchange: open, FromPath: "2"}}
	if r.Comparison != Rejected || !slices.Equal(r.AsRecorded, want) || !strings.Contains(strings.Join(r.Concluded, ""), `sent these values as recorded, although the live server has not issued them: "k3f9" (client frame 0, field 1; recorded in the answer of exchange 1, field 1)`) {
		t.Errorf("other values: %s %+v %q", r.Comparison, r.AsRecorded, r.Concluded)
	}
}
