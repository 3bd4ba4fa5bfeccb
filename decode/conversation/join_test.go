package conversation

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"

	"unwire/captures"
	"unwire/captures/profile"
	"unwire/decode"
	"unwire/decode/envelope"
	"unwire/decode/fieldpath"
	"unwire/proto"
)

// A recorded call is an exchange with its chunks.
type recorded struct {
	ex     captures.Exchange
	chunks []captures.Chunk
	fail   error // after the chunks
}

func (r *recorded) Exchange(context.Context, int64) (*captures.Exchange, error) { return &r.ex, nil }

func (r *recorded) Profile() *profile.Profile { return proto.Profile() }

func (r *recorded) Chunks(_ context.Context, _, from int64) iter.Seq2[captures.Chunk, error] {
	return func(yield func(captures.Chunk, error) bool) {
		for _, c := range r.chunks {
			if c.Seq >= from && !yield(c, nil) {
				return
			}
		}
		if r.fail != nil {
			yield(captures.Chunk{}, r.fail)
		}
	}
}

func headers(kv ...string) (out captures.Headers) {
	for i := 0; i+1 < len(kv); i += 2 {
		out = append(out, captures.Header{Name: kv[i], Value: kv[i+1]})
	}
	return out
}

// pieces is a Capture of calls that were made by hand.
type pieces struct {
	list []*recorded
	fail error // of listing
}

func (p *pieces) Exchange(_ context.Context, id int64) (*captures.Exchange, error) {
	for _, o := range p.list {
		if o.ex.ID == id {
			return &o.ex, nil
		}
	}
	return nil, errors.New("no such exchange")
}

func (p *pieces) Profile() *profile.Profile { return proto.Profile() }

func (p *pieces) Chunks(ctx context.Context, id, from int64) iter.Seq2[captures.Chunk, error] {
	for _, o := range p.list {
		if o.ex.ID == id {
			return o.Chunks(ctx, id, from)
		}
	}
	return func(func(captures.Chunk, error) bool) {}
}

func (p *pieces) Exchanges(context.Context) iter.Seq2[*captures.Exchange, error] {
	return func(yield func(*captures.Exchange, error) bool) {
		for _, o := range p.list {
			if !yield(&o.ex, nil) {
				return
			}
		}
		if p.fail != nil {
			yield(nil, p.fail)
		}
	}
}

// add puts a call in: its request passed at one time, its answer at others.
func (p *pieces) add(url, contentType, answerType string, request []byte, at time.Duration, answer ...[]byte) *recorded {
	o := &recorded{ex: captures.Exchange{
		ID: int64(len(p.list) + 1), Method: "POST", URL: "https://api.example.com" + url, HTTP: "1.1", Status: 200, Outcome: captures.Complete,
		RequestHeaders: captures.Headers{{Name: "content-type", Value: contentType}}, ResponseHeaders: captures.Headers{{Name: "content-type", Value: answerType}},
		Started: time.Unix(1000, 0).Add(at), Duration: time.Duration(len(answer)+1) * time.Millisecond, BytesUp: int64(len(request)),
	}}
	o.chunks = []captures.Chunk{{Exchange: o.ex.ID, Dir: captures.Up, Data: request}}
	for i, a := range answer {
		o.chunks = append(o.chunks, captures.Chunk{Exchange: o.ex.ID, Dir: captures.Down, Seq: int64(i + 1), T: time.Duration(i+1) * time.Millisecond, Data: a})
	}
	p.list = append(p.list, o)
	return o
}

const ssePath, appendPath = "/agent.v1.AgentService/RunSSE", "/aiserver.v1.BidiService/BidiAppend"

// head opens the server's half with the request id r.
func (p *pieces) head(at time.Duration, answer ...[]byte) *recorded {
	return p.add(ssePath, "application/connect+proto", "text/event-stream", frame(stringField(1, "r")), at, answer...)
}

func (p *pieces) append(number uint64, data []byte, at time.Duration) *recorded {
	return p.add(appendPath, "application/proto", "application/proto", appendMessage("r", number, data), at)
}

func stringField(n protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(nil, n, protowire.BytesType), s)
}

// appendMessage is an append with its message as hex.
func appendMessage(id string, number uint64, data []byte) []byte {
	b := stringField(1, hex.EncodeToString(data))
	b = append(b, stringField(2, string(stringField(1, id)))...)
	if number != 0 {
		b = protowire.AppendVarint(protowire.AppendTag(b, 3, protowire.VarintType), number)
	}
	return b
}

func frame(data []byte) []byte { return envelope.Append(nil, 0, data) }

func say(s string) []byte { return stringField(1, s) }

var endFrame = envelope.Append(nil, envelope.EndStream, []byte("{}"))

// headsOf returns the heads of all conversations.
func headsOf(c *Set) (heads []int64) {
	for _, th := range c.list {
		if len(th.heads) > 0 && len(th.appends) > 0 {
			heads = append(heads, th.heads[0])
		}
	}
	return heads
}

// joined is the one conversation of the pieces.
func (p *pieces) joined(t testing.TB) *Conversation {
	t.Helper()
	all, err := FindAll(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	heads := headsOf(all)
	if len(heads) != 1 {
		t.Fatalf("%d conversations", len(heads))
	}
	c, err := all.Decode(context.Background(), p, heads[0], decode.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if c.Err != nil && !strings.Contains(c.Err.Error(), "field ") {
		t.Fatal(c.Err)
	}
	return c
}

// script is what was said, in order, with the anomalies.
func script(c *Conversation) string {
	var parts []string
	for i := range c.Frames {
		f := &c.Frames[i]
		text := "end"
		if f.End == nil {
			text = string(f.Data)
			if f.Tree != nil && len(f.Tree.Find(fieldpath.Path{fieldpath.Field(1)})) == 1 {
				text = string(f.Tree.Payload(f.Tree.Find(fieldpath.Path{fieldpath.Field(1)})[0]))
			}
		}
		parts = append(parts, fmt.Sprintf("%s/%d %s", f.Dir, f.Seq, text))
	}
	for _, a := range c.Anomalies {
		parts = append(parts, "("+a.String()+")")
	}
	return strings.Join(parts, ", ")
}

const ms = time.Millisecond

func TestJoin(t *testing.T) {
	for name, c := range map[string]struct {
		make func(p *pieces)
		want string
	}{
		"in order": {func(p *pieces) {
			p.head(0, frame(say("A")), append(frame(say("B")), endFrame...))
			p.append(0, say("a"), 0)
			p.append(1, say("b"), 1500*time.Microsecond)
		}, "up/0 a, down/0 A, up/1 b, down/1 B, down/2 end"},
		"appends first": {func(p *pieces) {
			p.append(0, say("a"), 0)
			p.head(5*ms, frame(say("A")))
		}, "up/0 a, down/0 A"},
		"the later number first": {func(p *pieces) {
			p.head(0, frame(say("A")), frame(say("B")), frame(say("C")))
			p.append(1, say("b"), 0)
			p.append(0, say("a"), 1500*time.Microsecond)
			p.append(2, say("c"), 2500*time.Microsecond)
		}, "down/0 A, up/0 a, up/1 b, down/1 B, up/2 c, down/2 C, (message number 1 arrived before one with a lower number)"},
		"gaps": {func(p *pieces) {
			p.head(0)
			p.append(1, say("b"), 0)
			p.append(5, say("f"), ms)
		}, "up/0 b, up/1 f, (the client's message number 0 is missing), (the client's messages with the numbers 2 to 4 are missing)"},
		"a repeated one and another with its number": {func(p *pieces) {
			p.head(0)
			p.append(0, say("a"), 0)
			p.append(0, say("a"), ms)
			p.append(0, say("x"), 2*ms)
			p.append(1, say("b"), 3*ms)
		}, "up/0 a, up/1 b, (exchange 3 repeats the client's message number 0), (exchange 4 contains another message with the number 0)"},
		"one that was declined, and one that was sent again": {func(p *pieces) {
			p.head(0)
			for i, n := range []uint64{0, 0, 1} {
				o := p.append(n, say(fmt.Sprint("m", n)), time.Duration(i)*ms)
				if i != 1 {
					o.ex.Status, o.ex.ResponseHeaders = 429, captures.Headers{{Name: "content-type", Value: "application/json"}}
				}
			}
		}, "up/0 m0, up/1 m1, (exchange 2 repeats the client's message number 0), (the server answered message number 1 with an error)"},
		"no hex": {func(p *pieces) {
			p.head(0)
			p.add(appendPath, "application/proto", "application/proto", append(stringField(1, "3a0"), stringField(2, string(stringField(1, "r")))...), 0)
		}, "up/0 3a0, (the message with the number 0 in exchange 2 could not be decoded)"},
		"a number that no stream reaches": {func(p *pieces) {
			p.head(0)
			p.append(1<<63-1, say("z"), 0)
			p.append(1<<64-1, say("minus one"), 0)
		}, "up/0 z, up/1 minus one, (the client's messages with the numbers 0 to 9223372036854775806 are missing)"},
		"bytes, gzip and an envelope": {func(p *pieces) {
			p.head(0)
			id := stringField(2, string(stringField(1, "r")))
			for i, form := range []wrapping{{}, {Gzip: true}, {Enveloped: true}, {Enveloped: true, Gzip: true}, {Hex: true, Gzip: true}, {Hex: true, Enveloped: true}} {
				data, err := form.Wrap(say(fmt.Sprint("m", i)))
				if err != nil {
					panic(err)
				}
				field := protowire.Number(4)
				if form.Hex {
					field = 1
				}
				b := append(stringField(field, string(data)), id...)
				b = protowire.AppendVarint(protowire.AppendTag(b, 3, protowire.VarintType), uint64(i))
				p.add(appendPath, "application/proto", "application/proto", b, time.Duration(i)*ms)
			}
		}, "up/0 m0, up/1 m1, up/2 m2, up/3 m3, up/4 m4, up/5 m5"},
		"base64 events": {func(p *pieces) {
			p.head(0, []byte("data: "+base64.StdEncoding.EncodeToString(frame(say("A")))+"\n\nevent: end\ndata:\n\n"))
			p.append(0, say("a"), 0)
		}, "up/0 a, down/0 A, down/1 end"},
		"two heads, the second refused": {func(p *pieces) {
			p.head(0, frame(say("A")), endFrame)
			p.append(0, say("a"), 0)
			p.head(500*time.Microsecond, envelope.Append(nil, envelope.EndStream, []byte(`{"error":{"code":"already_exists"}}`)))
		}, "up/0 a, down/0 A, down/1 end"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &pieces{}
			c.make(p)
			j := p.joined(t)
			if got := script(j); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if j.Service != "agent.v1.AgentService" || j.RPC != "Run" || j.RequestID != "r" || len(j.Origins) != len(j.Frames) {
				t.Errorf("%s/%s of %q, %d origins for %d frames", j.Service, j.RPC, j.RequestID, len(j.Origins), len(j.Frames))
			}
		})
	}
}

func TestJoinPolled(t *testing.T) {
	const path = "/aiserver.v1.ChatService/StreamUnifiedChatWithToolsIdempotentPoll"
	poll := func(number uint64, text string, eof bool) []byte {
		b := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), number)
		if text != "" {
			b = append(b, stringField(2, base64.StdEncoding.EncodeToString(say(text)))...)
		}
		if eof {
			b = append(b, 0x18, 1)
		}
		return frame(b)
	}
	p := &pieces{}
	ask := frame(append(stringField(1, string(stringField(1, "r"))), 0x10, 1))
	p.append(0, say("a"), 0)
	p.add(path, "application/connect+proto", "application/connect+proto", ask, ms, poll(0, "A", false), append(poll(1, "B", false), endFrame...))
	p.append(1, say("b"), 4*ms)
	p.add(path, "application/connect+proto", "application/connect+proto", ask, 5*ms, poll(1, "B", false), poll(3, "D", false), append(poll(4, "", true), endFrame...))
	c := p.joined(t)
	const want = "up/0 a, down/0 A, down/1 B, up/1 b, down/2 D, down/3 end, (exchange 4 repeats the client's message number 1), (the client's message number 2 is missing)"
	if got := script(c); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if c.RPC != "StreamUnifiedChatWithToolsIdempotent" || !slices.Equal(c.Heads, []int64{2, 4}) || !slices.Equal(c.Appends, []int64{1, 3}) {
		t.Errorf("%s, heads %d, appends %d", c.RPC, c.Heads, c.Appends)
	}
}

// What has no other half stays what it is.
func TestNoConversation(t *testing.T) {
	p := &pieces{fail: errors.New("cut off")}
	p.add("/aiserver.v1.HealthService/StreamSSE", "application/connect+proto", "text/event-stream", frame(say("foo")), 0, frame(say("foo")))
	p.add(appendPath, "application/proto", "application/proto", appendMessage("another", 0, say("a")), 0)
	p.add(appendPath, "application/proto", "application/proto", []byte("\x0a\x02"), 0)
	p.add("/x.v1.Poll/Poll", "application/proto", "application/proto", say("r"), 0)
	all, err := FindAll(t.Context(), p)
	if err == nil || !strings.Contains(err.Error(), "cut off") {
		t.Errorf("error %v", err)
	}
	for id := range int64(6) {
		if all.Head(id) != 0 || all.parts(id) != nil {
			t.Errorf("exchange %d is a piece", id)
		}
	}
	if _, err := all.Decode(t.Context(), p, 1, decode.Options{}); !errors.Is(err, errNoConversation) {
		t.Errorf("error %v", err)
	}
	if c, err := Decode(t.Context(), p.list[0], 7, decode.Options{}); c != nil || err != nil {
		t.Errorf("of a source that cannot list: %v, %v", c, err)
	}
}

func TestJoinIsBounded(t *testing.T) {
	p := &pieces{}
	p.head(0, slices.Repeat(frame(say("A")), 50))
	for n := range uint64(20) {
		p.append(n, say("a"), 0)
	}
	bomb, err := wrapping{Gzip: true}.Wrap(say(strings.Repeat("b", 3<<20)))
	if err != nil {
		t.Fatal(err)
	}
	for n := range uint64(20) {
		p.append(20+n, bomb, 0)
	}
	all, err := FindAll(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]decode.Options{
		"more than 30 frames":                                                {MaxFrames: 30},
		"decompresses to more bytes than the limit":                          {MaxTotal: 10 << 20},
		"of its exchanges are not decoded, because the conversation exceeds": {MaxNodes: 220},
	} {
		c, err := all.Decode(t.Context(), p, 1, o)
		if err != nil || c.Err == nil || !strings.Contains(c.Err.Error(), want) {
			t.Errorf("want %s: %v, %v", want, err, c.Err)
			continue
		}
		held := 0
		for i := range c.Frames {
			held += len(c.Frames[i].Data)
		}
		if o.MaxFrames > 0 && len(c.Frames) != o.MaxFrames || o.MaxTotal > 0 && int64(held) > o.MaxTotal+20*(64<<10) {
			t.Errorf("%s: %d frames, %d bytes", want, len(c.Frames), held)
		}
	}
}

// In whatever order appends arrive, and however often each, the same is said.
func TestJoinDoesNotDependOnArrival(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "n")
		p := &pieces{}
		p.head(0, frame(say("A")))
		order := rapid.Permutation(slices.Repeat(seqTo(n), 2)).Draw(t, "order")
		for i, k := range order {
			p.append(uint64(k), say(fmt.Sprint("m", k)), time.Duration(i)*ms)
		}
		var parts []*decode.Exchange
		for _, o := range p.list {
			ex, err := decode.Decode(context.Background(), o, o.ex.ID, decode.Options{})
			if err != nil {
				t.Fatal(err)
			}
			parts = append(parts, ex)
		}
		c := Join(rapid.Permutation(parts).Draw(t, "given"), decode.Options{Profile: proto.Profile()})[0]
		for k := range n {
			if f := c.Frame(captures.Up, k); f == nil || string(f.Data) != string(say(fmt.Sprint("m", k))) {
				t.Fatalf("up/%d is %v", k, f)
			}
		}
		duplicates := 0
		for _, a := range c.Anomalies {
			if a.Kind == duplicate {
				duplicates++
			}
		}
		if c.Frame(captures.Up, n) != nil || duplicates != n {
			t.Fatalf("%s", script(c))
		}
	})
}

func seqTo(n int) (list []int) {
	for i := range n {
		list = append(list, i)
	}
	return list
}

// FuzzJoin reads calls out of arbitrary bytes: what sort each is, when its
// request passed, and its bodies.
func FuzzJoin(f *testing.F) {
	f.Add([]byte{})
	seed := func(sort, at byte, request, answer []byte) []byte {
		b := binary.BigEndian.AppendUint16([]byte{sort, at}, uint16(len(request)))
		return append(binary.BigEndian.AppendUint16(append(b, request...), uint16(len(answer))), answer...)
	}
	talk := seed(0, 0, frame(stringField(1, "r")), append(frame(say("A")), endFrame...))
	talk = append(talk, seed(1, 9, appendMessage("r", 1, say("b")), nil)...)
	talk = append(talk, seed(1, 12, appendMessage("r", 0, say("a")), nil)...)
	f.Add(talk)
	f.Add(append(talk, seed(2, 20, frame(stringField(1, string(stringField(1, "r")))), frame(append([]byte{8, 1}, stringField(2, "CgFC")...)))...))
	f.Add(append(talk, seed(5, 3, appendMessage("r", 1, say("c")), []byte("no"))...))
	kinds := [...]struct{ url, up, down string }{
		{ssePath, "application/connect+proto", "text/event-stream"},
		{appendPath, "application/proto", "application/proto"},
		{"/agent.v1.AgentService/RunPoll", "application/connect+proto", "application/connect+proto"},
		{"/agent.v1.AgentService/Run", "application/connect+proto", "application/connect+proto"},
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p := &pieces{}
		take := func() []byte {
			if len(b) < 2 {
				return nil
			}
			n := min(int(binary.BigEndian.Uint16(b)), len(b)-2)
			part := b[2 : 2+n]
			b = b[2+n:]
			return part
		}
		for len(b) >= 2 && len(p.list) < 50 {
			k, at := kinds[b[0]%4], time.Duration(b[1])*ms/4
			failed := b[0]&4 != 0
			b = b[2:]
			if o := p.add(k.url, k.up, k.down, take(), at, take()); failed {
				o.ex.Status = 500
			}
		}
		all, err := FindAll(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		for _, head := range headsOf(all) {
			c, err := all.Decode(t.Context(), p, head, decode.Options{})
			if err != nil {
				t.Fatal(err)
			}
			checkConversation(t, c)
		}
	})
}

// checkConversation holds what is true of every conversation.
func checkConversation(t *testing.T, c *Conversation) {
	t.Helper()
	if len(c.Heads) == 0 || len(c.Appends) == 0 || c.ID != c.Heads[0] || len(c.Origins) != len(c.Frames) {
		t.Fatalf("heads %d, appends %d, ID %d, %d origins of %d frames", c.Heads, c.Appends, c.ID, len(c.Origins), len(c.Frames))
	}
	var seq [2]int
	last := int64(-1)
	seen := map[origin]bool{}
	for i := range c.Frames {
		f, o := &c.Frames[i], c.Origins[i]
		if f.Seq != seq[f.Dir] || f.T < 0 || seen[o] {
			t.Fatalf("frame %d: %s/%d at %v from %+v", i, f.Dir, f.Seq, f.T, o)
		}
		seq[f.Dir]++
		seen[o] = true
		if f.Dir == captures.Up && o.Number >= 0 {
			if o.Number <= last {
				t.Fatalf("number %d after %d", o.Number, last)
			}
			last = o.Number
		}
	}
	for _, a := range c.Anomalies {
		if a.Seq >= seq[a.Dir] || a.String() == "" || a.Kind == Gap && a.Count <= 0 {
			t.Fatalf("%+v of %d", a, seq)
		}
	}
}

// BenchmarkJoin is a conversation of 5,000 frames down and 150 appends, from
// decoded exchanges; the rate is of the bytes of all messages.
func BenchmarkJoin(b *testing.B) {
	p := &pieces{}
	var answer []byte
	for i := range 5000 {
		answer = append(answer, frame(say(fmt.Sprint("a piece of text, number ", i)))...)
	}
	p.head(0, answer)
	size := int64(len(answer))
	for n := range uint64(150) {
		o := p.append(n^1, say(strings.Repeat("what a tool said ", 20)), time.Duration(n)*ms)
		size += int64(len(o.chunks[0].Data))
	}
	var parts []*decode.Exchange
	for _, o := range p.list {
		ex, err := decode.Decode(b.Context(), o, o.ex.ID, decode.Options{})
		if err != nil {
			b.Fatal(err)
		}
		parts = append(parts, ex)
	}
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		if c := Join(parts, decode.Options{Profile: proto.Profile()}); len(c) != 1 || len(c[0].Frames) != 5150 {
			b.Fatal("not joined")
		}
	}
}
