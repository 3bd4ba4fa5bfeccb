package replay

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protowire"
)

// Ordinary conversations, in which the client's values are its own, although the server's values are of the
// same kinds: the recorded frames are always right, so that a replay which stops, or changes a frame, is
// wrong.

// A part is a field of a message: its name in JSON, and its value, a string or a uint64.
type part struct {
	name  string
	value any
}

// encodeParts writes a message in a codec.
func encodeParts(codec string, parts []part) []byte {
	var b bytes.Buffer
	if codec == "json" {
		b.WriteByte('{')
		for i, p := range parts {
			if i > 0 {
				b.WriteByte(',')
			}
			if s, ok := p.value.(string); ok {
				fmt.Fprintf(&b, "%q:%q", p.name, s)
				continue
			}
			fmt.Fprintf(&b, "%q:%d", p.name, p.value)
		}
		b.WriteByte('}')
		return b.Bytes()
	}
	var out []byte
	for i, p := range parts {
		n := protowire.Number(i + 1)
		if s, ok := p.value.(string); ok {
			out = textField(out, n, s)
			continue
		}
		out = numberField(out, n, p.value.(uint64))
	}
	return out
}

// oneOf chooses a value.
func oneOf(r *rand.Rand, list ...string) string { return list[r.IntN(len(list))] }

// between chooses a number.
func between(r *rand.Rand, low, high int) uint64 { return uint64(low + r.IntN(high-low+1)) }

// ordinaryStart is the time of the first message.
var ordinaryStart = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// An ordinary is a kind of conversation: what the client and the server say in a turn.
type ordinary struct {
	name           string
	client, server func(r *rand.Rand, turn int) []part
}

// alike is a conversation of which both sides say the same kinds of things.
func alike(name string, say func(r *rand.Rand, turn int) []part) ordinary {
	return ordinary{name, say, say}
}

var ordinaries = []ordinary{
	alike("small counters", func(r *rand.Rand, turn int) []part {
		return []part{{"seq", uint64(turn + 1)}, {"total", between(r, 1, 50)}}
	}),
	alike("large counters", func(r *rand.Rand, turn int) []part {
		return []part{{"offset", uint64(turn+1) * 65536}, {"bytes", between(r, 1, 64) * 1024}}
	}),
	alike("timestamps", func(r *rand.Rand, turn int) []part {
		at := ordinaryStart.Add(time.Duration(turn)*time.Second + time.Duration(r.IntN(900))*time.Millisecond)
		return []part{{"time_ms", uint64(at.UnixMilli())}, {"at", at.Format(time.RFC3339Nano)}}
	}),
	alike("http dates", func(r *rand.Rand, _ int) []part {
		return []part{{"modified", ordinaryStart.AddDate(0, 0, -r.IntN(30)).Format(http.TimeFormat)}}
	}),
	alike("prices", func(r *rand.Rand, _ int) []part {
		cents := between(r, 12900, 12999)
		return []part{{"price", fmt.Sprintf("%d.%02d", cents/100, cents%100)}, {"currency", oneOf(r, "EUR", "USD", "CHF")}, {"micros", cents * 10000}}
	}),
	alike("dimensions", func(r *rand.Rand, _ int) []part {
		size := oneOf(r, "1920x1080", "1280x720", "3840x2160", "800x600")
		return []part{{"size", size}, {"width", between(r, 8, 20) * 160}, {"format", oneOf(r, "image/png", "image/jpeg", "image/webp")}}
	}),
	alike("ports", func(r *rand.Rand, _ int) []part {
		port := oneOf(r, "8080", "8443", "50051", "49152", "54321")
		return []part{{"address", "127.0.0.1:" + port}, {"note", "listening on port " + port}}
	}),
	alike("years", func(r *rand.Rand, _ int) []part {
		return []part{{"text", fmt.Sprintf("What happened in %s in %d?", oneOf(r, "London", "Paris", "Vienna"), between(r, 1960, 1969))}}
	}),
	{
		"chat in JSON",
		func(r *rand.Rand, _ int) []part {
			return []part{{"role", "user"}, {"content", oneOf(r, "Tell me more about photosynthesis.", "How do mitochondria work?", "Explain chlorophyll in 3 sentences.")}, {"model", oneOf(r, "gpt-4o-mini", "claude-3-haiku")}}
		},
		func(r *rand.Rand, _ int) []part {
			return []part{{"role", "assistant"}, {"content", oneOf(r, "Chlorophyll absorbs light in photosynthesis.", "Mitochondria make ATP.", "It takes 3 sentences.")}, {"model", oneOf(r, "gpt-4o-mini", "claude-3-haiku")}, {"tokens", between(r, 10, 400)}}
		},
	},
	alike("states", func(r *rand.Rand, _ int) []part {
		return []part{{"state", oneOf(r, "STATUS_RUNNING", "STATUS_PENDING", "STATUS_COMPLETE")}, {"level", oneOf(r, "warning", "critical", "information")}}
	}),
	alike("places", func(r *rand.Rand, _ int) []part {
		return []part{{"locale", oneOf(r, "en-US", "de-DE", "fr-FR")}, {"city", oneOf(r, "London", "Vienna", "Istanbul")}, {"zone", oneOf(r, "Europe/London", "Europe/Vienna")}}
	}),
	alike("versions", func(r *rand.Rand, _ int) []part {
		return []part{{"version", fmt.Sprintf("v1.%d.%d", between(r, 20, 25), between(r, 0, 3))}, {"go", oneOf(r, "go1.24", "go1.25")}}
	}),
	alike("files", func(r *rand.Rand, _ int) []part {
		return []part{{"path", oneOf(r, "src/main.go", "README.md", "internal/server/handler2.go")}, {"line", between(r, 1, 400)}}
	}),
	alike("people", func(r *rand.Rand, _ int) []part {
		return []part{{"user", oneOf(r, "alice", "bobby42", "charlotte")}, {"mail", oneOf(r, "alice@example.com", "bobby42@example.com")}}
	}),
	alike("colours", func(r *rand.Rand, _ int) []part {
		return []part{{"colour", oneOf(r, "#ff8800", "#00aaff", "#222222")}, {"percent", between(r, 0, 100)}}
	}),
	alike("algorithms", func(r *rand.Rand, _ int) []part {
		return []part{{"hash", oneOf(r, "sha256", "sha512", "blake2b")}, {"encoding", oneOf(r, "base64", "utf8", "gzip")}, {"codec", oneOf(r, "h264", "av1", "mp3")}}
	}),
	alike("own ids", func(r *rand.Rand, _ int) []part {
		return []part{{"id", fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", r.Uint32(), r.Uint32()>>16, r.Uint32()>>20, r.Uint32()>>20, r.Uint64()>>16)}}
	}),
}

// ordinaryTurns is the number of messages of each side.
const ordinaryTurns = 6

// An ordinaryServer has conversations with each client, and keeps what clients sent.
type ordinaryServer struct {
	mu sync.Mutex
	// seed decides the values of the next conversation.
	seed uint64
	// changing means that each conversation has another seed.
	changing bool
	// got are the messages of the last client.
	got [][]byte
}

// converse has one conversation.
func (s *ordinaryServer) converse(kind, codec string, receive func() ([]byte, error), send func([]byte) error) error {
	s.mu.Lock()
	if s.changing {
		s.seed++
	}
	r := rand.New(rand.NewPCG(s.seed, 1)) //nolint:gosec // reproducible
	s.got = nil
	s.mu.Unlock()
	for _, o := range ordinaries {
		if o.name != kind {
			continue
		}
		for turn := 0; ; turn++ {
			m, err := receive()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			s.mu.Lock()
			s.got = append(s.got, bytes.Clone(m))
			s.mu.Unlock()
			if err := send(encodeParts(codec, o.server(r, turn))); err != nil {
				return err
			}
		}
	}
	return errors.New("no such kind")
}

// A jsonCodec has connect pass JSON on.
type jsonCodec struct{ rawCodec }

func (jsonCodec) Name() string { return "json" }

// serveOrdinary starts the servers, of connect-go and of grpc-go, and returns their URLs.
func serveOrdinary(t *testing.T, s *ordinaryServer) map[string]string {
	mux := http.NewServeMux()
	for _, codec := range []connect.Codec{rawCodec{}, jsonCodec{}} {
		path := "/ordinary.v1." + codec.Name() + "/Talk"
		mux.Handle(path, connect.NewBidiStreamHandler(path, func(_ context.Context, stream *connect.BidiStream[raw, raw]) error {
			return s.converse(stream.RequestHeader().Get("x-kind"), codec.Name(), func() ([]byte, error) {
				m, err := stream.Receive()
				if err != nil {
					return nil, err
				}
				return m.b, nil
			}, func(b []byte) error { return stream.Send(&raw{b}) })
		}, connect.WithCodec(codec)))
	}
	g := grpc.NewServer(grpc.ForceServerCodec(rawCodec{}), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error { //nolint:staticcheck // as codecs of connect are
		name, _ := grpc.MethodFromServerStream(stream)
		codec := "proto"
		if strings.Contains(name, "json") {
			codec = "json"
		}
		return s.converse(kindOf(stream.Context()), codec, func() ([]byte, error) {
			var m raw
			err := stream.RecvMsg(&m)
			return m.b, err
		}, func(b []byte) error { return stream.SendMsg(&raw{b}) })
	}))
	t.Cleanup(g.Stop)
	return map[string]string{
		"connect-go": newVersionServer(t, mux, true, false, true).URL,
		"grpc-go":    newVersionServer(t, g, true, false, true).URL,
	}
}

// talkOrdinary has a conversation as the client, which is recorded.
func talkOrdinary(l *lab, o ordinary, url string, codec connect.Codec, seed uint64, options ...connect.ClientOption) int64 {
	l.Helper()
	r := rand.New(rand.NewPCG(seed, 2)) //nolint:gosec // reproducible
	ctx, cancel := context.WithTimeout(l.Context(), time.Minute)
	defer cancel()
	stream := connect.NewClient[raw, raw](l.http, url+"/ordinary.v1."+codec.Name()+"/Talk", append(options, connect.WithCodec(codec))...).CallBidiStream(ctx)
	stream.RequestHeader().Set("x-kind", o.name)
	for turn := range ordinaryTurns {
		if err := stream.Send(&raw{encodeParts(codec.Name(), o.client(r, turn))}); err != nil {
			l.Fatal(err)
		}
		if _, err := stream.Receive(); err != nil {
			l.Fatal(err)
		}
	}
	_ = stream.CloseRequest()
	_, _ = stream.Receive() // the end
	_ = stream.CloseResponse()
	return l.recorded()
}

// TestFalseAlarms counts the replays of ordinary conversations that stop, or change a frame, although the
// recorded frames are right. UNWIRE_LONG=1 repeats each kind 8 times.
func TestFalseAlarms(t *testing.T) {
	rounds := uint64(1)
	if os.Getenv("UNWIRE_LONG") != "" {
		rounds = 8
	}
	type count struct{ replays, stopped, changed, remarks int }
	for _, changing := range []bool{false, true} {
		t.Run(map[bool]string{false: "the same values", true: "other values"}[changing], func(t *testing.T) {
			l := newLab(t)
			s := &ordinaryServer{}
			urls := serveOrdinary(t, s)
			l.tap.Next = insecureHTTP2(t)
			counts := map[string]*count{}
			for _, o := range ordinaries {
				c := &count{}
				counts[o.name] = c
				for round := range rounds {
					for name, url := range urls {
						var options []connect.ClientOption
						if name == "grpc-go" {
							options = append(options, connect.WithGRPC())
						}
						for _, codec := range []connect.Codec{rawCodec{}, jsonCodec{}} {
							h := fnv.New64a()
							fmt.Fprintln(h, o.name, round, codec.Name(), name)
							s.seed, s.changing = h.Sum64(), changing
							id := talkOrdinary(l, o, url, codec, h.Sum64(), options...)
							sent := s.got
							settings := l.options()
							settings.Insecure, settings.Wait, settings.Quiet = true, 2*time.Second, 100*time.Millisecond
							r := l.replay(id, settings)
							c.replays++
							if err := r.NoteAsRecorded(t.Context(), l.store, id); err != nil {
								t.Fatal(err)
							}
							if len(r.AsRecorded) > 0 {
								c.remarks++
							}
							switch s.mu.Lock(); {
							case len(s.got) != len(sent):
								c.stopped++
								t.Logf("%s, %s, %s: %s %s %q %q", o.name, name, codec.Name(), r.Comparison, r.Code, r.Message, r.Concluded)
							case !equalFrames(s.got, sent):
								c.changed++
								t.Logf("%s, %s, %s: changed to %q from %q", o.name, name, codec.Name(), s.got, sent)
							}
							s.mu.Unlock()
						}
					}
				}
			}
			var names []string
			all := count{}
			for name, c := range counts {
				names = append(names, name)
				all.replays, all.stopped, all.changed, all.remarks = all.replays+c.replays, all.stopped+c.stopped, all.changed+c.changed, all.remarks+c.remarks
			}
			sort.Strings(names)
			for _, name := range names {
				t.Logf("%-16s %+v", name, *counts[name])
			}
			t.Logf("all %+v", all)

			// The seeds are fixed, so these numbers only change with the rules.
			stops, changes := 0, 0
			if changing {
				stops, changes = all.replays/20, all.replays*3/20
			}
			if rounds == 1 && (all.stopped > stops || all.changed > changes) {
				t.Errorf("of %d replays, %d stopped, and %d changed a frame; at most %d and %d may", all.replays, all.stopped, all.changed, stops, changes)
			}
		})
	}
}

// kindOf returns the kind of conversation that a client of gRPC asks for.
func kindOf(ctx context.Context) string {
	md, _ := metadata.FromIncomingContext(ctx)
	return strings.Join(md.Get("x-kind"), "")
}

// insecureHTTP2 is a client of the servers, whose certificates are of the test.
func insecureHTTP2(t *testing.T) *http.Transport {
	tr := &http.Transport{Protocols: new(http.Protocols), TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // see above
	tr.Protocols.SetHTTP2(true)
	t.Cleanup(tr.CloseIdleConnections)
	return tr
}

func equalFrames(a, b [][]byte) bool {
	for i := range a {
		if !bytes.Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}
