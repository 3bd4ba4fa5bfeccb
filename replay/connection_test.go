package replay

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/decode"
	profiles "unwire/proto"
	"unwire/replay/credential"
	"unwire/replay/testdata/toolloop"
)

// decodeMessage reads a message of a WebSocket.
func decodeMessage(data []byte, binary bool) (*toolloop.Message, error) {
	m := &toolloop.Message{}
	if binary {
		return m, proto.Unmarshal(data, m)
	}
	return m, protojson.Unmarshal(data, m)
}

func encodeMessage(m *toolloop.Message, binary bool) ([]byte, error) {
	if binary {
		return proto.Marshal(m)
	}
	return protojson.Marshal(m)
}

// webSocket has one conversation over a WebSocket.
func (s *toolLoopServer) webSocket(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	all := s.draw()
	s.mu.Unlock()
	w.Header().Set(conversationHeader, all[0].uuid)
	if s.token != "" && r.Header.Get("authorization") != "Bearer "+s.token {
		http.Error(w, "no token", http.StatusUnauthorized)
		return
	}
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true, CompressionMode: websocket.CompressionContextTakeover, Subprotocols: []string{"tools"}})
	if err != nil {
		return
	}
	defer conn.CloseNow() //nolint:errcheck // it is over
	kind := websocket.MessageText
	receive := func() (*toolloop.Message, error) {
		k, data, err := conn.Read(r.Context())
		if err != nil {
			return nil, err
		}
		kind = k
		return decodeMessage(data, k == websocket.MessageBinary)
	}
	send := func(m *toolloop.Message) error {
		data, err := encodeMessage(m, kind == websocket.MessageBinary)
		if err != nil {
			return err
		}
		return conn.Write(r.Context(), kind, data)
	}
	if err := s.ask(all, receive, send); err != nil {
		_ = conn.Close(websocket.StatusPolicyViolation, "stale")
		return
	}
	_, _, _ = conn.Read(r.Context()) // the client closes
}

// recordWebSocket records a conversation over a WebSocket.
func recordWebSocket(t testing.TB, s *toolLoopServer, out *store.Store, binary bool) int64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	address := s.URL + "/ws/toolloop"
	conn, resp, err := websocket.Dial(ctx, address, &websocket.DialOptions{
		HTTPClient: s.Client(), HTTPHeader: http.Header{"Authorization": {"Bearer " + s.token}}, Subprotocols: []string{"tools", "old"}, CompressionMode: websocket.CompressionContextTakeover,
	})
	if err != nil {
		t.Fatal(err)
	}
	headers := captures.Headers{
		{Name: "Connection", Value: "Upgrade"},
		{Name: "Upgrade", Value: "websocket"},
		{Name: "Sec-WebSocket-Key", Value: "c3RhbGUgc3RhbGUgc3RhbGU="},
		{Name: "Sec-WebSocket-Version", Value: "13"},
		{Name: "Sec-WebSocket-Protocol", Value: "tools, old"},
	}
	if s.token != "" {
		headers = append(headers, captures.Header{Name: "Authorization", Value: "Bearer " + s.token})
	}
	shake, err := out.Begin(captures.Exchange{Method: "GET", URL: address, HTTP: "1.1", Started: time.Now(), RequestHeaders: headers})
	if err != nil {
		t.Fatal(err)
	}
	shake.Response(resp.StatusCode, captures.SortedHeaders(resp.Header))
	shake.End(captures.Complete, "")
	rec, err := out.Begin(captures.Exchange{Transport: captures.WebSocket, URL: strings.Replace(address, "https", "wss", 1), HTTP: "1.1", Started: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	rec.Relate(captures.HandshakeOf, shake.ID())
	kind, op := websocket.MessageText, captures.OpText
	if binary {
		kind, op = websocket.MessageBinary, captures.OpBinary
	}
	for m := begin(); m != nil; {
		data, err := encodeMessage(m, binary)
		if err != nil {
			t.Fatal(err)
		}
		rec.Message(captures.Up, op|captures.OpFinal, data)
		if err := conn.Write(ctx, kind, data); err != nil {
			t.Fatal(err)
		}
		// A question may come in pieces, which nothing answers.
		for m = nil; m == nil; {
			if _, data, err = conn.Read(ctx); err != nil {
				t.Fatal(err)
			}
			rec.Message(captures.Down, op|captures.OpFinal, data)
			q, err := decodeMessage(data, binary)
			if err != nil {
				t.Fatal(err)
			}
			if q.GetTool() == "done" {
				break
			}
			m = s.form.answer(q, resp.Header.Get(conversationHeader))
		}
	}
	rec.Message(captures.Up, captures.OpClose|captures.OpFinal, []byte{3, 0xe8})
	_ = conn.Close(websocket.StatusNormalClosure, "")
	rec.Message(captures.Down, captures.OpClose|captures.OpFinal, []byte{3, 0xe8})
	rec.End(captures.Complete, "")
	return rec.ID()
}

// made is a token that the server of TestWebSocket wants.
const made = "zq-7f3b-made-up-SECRET-9d41x"

func tokenOf(t *testing.T, value string) *credential.Credentials {
	t.Helper()
	c, err := credential.Resolver{Getenv: func(name string) string {
		if name == credential.EnvToken {
			return value
		}
		return ""
	}}.Load("")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A WebSocket is replayed by its own number and by that of its handshake, and the answer is
// stored as two exchanges. A server that refuses it has answered.
func TestWebSocket(t *testing.T) {
	l := recordLoop(t, causalTransport{"", func(t testing.TB, s *toolLoopServer, out *store.Store) int64 {
		s.token = made
		return recordWebSocket(t, s, out, false)
	}}, formNamed(t, "uuid"), nil)
	for _, id := range []int64{l.id, l.id - 1} {
		out, err := store.Create(filepath.Join(t.TempDir(), "out.uwc"), store.Options{Profile: profiles.Profile()})
		if err != nil {
			t.Fatal(err)
		}
		o := settings{Wait: time.Minute, Quiet: 100 * time.Millisecond, Roots: (&testServer{Server: l.Server}).roots(), Credentials: tokenOf(t, made)}
		p, err := newPlan(t.Context(), l.file, id, o)
		if err != nil {
			t.Fatal(err)
		}
		if d := p.Description(); !strings.HasPrefix(d.URL, "wss://") || d.Effects == EffectsNone || len(d.Frames) != 7 || d.Exchange != l.id {
			t.Errorf("%s, %s, %d frames of %d", d.URL, d.Effects, len(d.Frames), d.Exchange)
		}
		r, err := p.Send(t.Context(), out)
		if err != nil {
			t.Fatal(err)
		}
		if r.Code != "ok" || r.Exchange != 2 || r.Sent != 7 || r.Received != 7 {
			t.Errorf("%s %s %s, exchange %d, %d up, %d down: %q", r.Comparison, r.Code, r.Message, r.Exchange, r.Sent, r.Received, r.Concluded)
		}
		ex, err := decode.Decode(t.Context(), out, 2, decode.Options{})
		if err != nil || ex.Transport != captures.WebSocket || ex.Code != "ok" {
			t.Errorf("recorded as %+v, %v", ex, err)
		}
		if rel, err := out.Relations(t.Context(), 2); err != nil || len(rel) != 1 || rel[0].Kind != captures.HandshakeOf || rel[0].Target != 1 {
			t.Errorf("%+v, %v", rel, err)
		}
		if err := out.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if l.stale+l.wrong > 0 || l.ended != 3 {
		t.Errorf("%d stale, %d wrong, %d ended", l.stale, l.wrong, l.ended)
	}
	o := settings{Roots: (&testServer{Server: l.Server}).roots(), Credentials: tokenOf(t, "zq-7f3b-another-SECRET-9d41x")}
	p, err := newPlan(t.Context(), l.file, l.id, o)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := p.Send(t.Context(), nil); err != nil || r.Comparison != Rejected || r.Origin != FromServer || r.Code != "unauthenticated" || r.Status != 401 {
		t.Errorf("%+v, %v", r, err)
	}
	// Another host is not sent to.
	o.To = &url.URL{Scheme: "https", Host: "api.example.com"}
	if p, err = newPlan(t.Context(), l.file, l.id, o); err != nil {
		t.Fatal(err)
	}
	if r, err := p.Send(t.Context(), nil); err != nil || r.Comparison != Refused {
		t.Errorf("%+v, %v", r, err)
	}
}

// lineServer asks by lines of text, with an identifier in each, over bytes.
type lineServer struct {
	runs, ended, wrong int
}

// lineTicket is the identifier of a question of a run.
func lineTicket(run, n int) string {
	h := sha256.Sum256([]byte{byte(run), byte(n)})
	return hex.EncodeToString(h[:16])
}

func (s *lineServer) serve(c net.Conn) {
	defer c.Close()
	s.runs++
	in := bufio.NewReader(c)
	_, _ = fmt.Fprintf(c, "220 hello, session %032x\r\n", s.runs*7919)
	for i := range 3 {
		id := lineTicket(s.runs, i+1)
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		want := fmt.Sprintf("TAKE %d", i)
		if i > 0 {
			want += " " + lineTicket(s.runs, i)
		}
		if !strings.HasPrefix(line, want+"\r") {
			s.wrong++
			_, _ = fmt.Fprintf(c, "500 %q is not %q\r\n", line, want)
			return
		}
		// In pieces: how bytes are divided does not count.
		_, _ = fmt.Fprintf(c, "250 ticket ")
		time.Sleep(10 * time.Millisecond)
		_, _ = fmt.Fprintf(c, "%s\r\n", id)
	}
	s.ended++
}

// Bytes without messages are replayed turn by turn.
func TestRawConnection(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	s := &lineServer{}
	done := make(chan struct{}, 10)
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			s.serve(c)
			done <- struct{}{}
		}
	}()
	file, err := store.Create(filepath.Join(t.TempDir(), "in.uwc"), store.Options{Profile: profiles.Profile()})
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rec, err := file.Begin(captures.Exchange{Transport: captures.RawTCP, URL: "tcp://" + listener.Addr().String(), Started: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(c)
	hear := func() string {
		line, err := in.ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		rec.Chunk(captures.Down, []byte(line))
		return strings.TrimSpace(line)
	}
	hear()
	id := ""
	for i := range 3 {
		line := strings.TrimSuffix(fmt.Sprintf("TAKE %d %s", i, id), " ") + "\r\n"
		rec.Chunk(captures.Up, []byte(line))
		if _, err := io.WriteString(c, line); err != nil {
			t.Fatal(err)
		}
		id = strings.Fields(hear())[2]
	}
	<-done
	_ = c.Close()
	rec.End(captures.Complete, "")
	if err := file.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s.ended != 1 {
		t.Fatalf("the recording did not end: %+v", s)
	}
	for range 2 {
		p, err := newPlan(t.Context(), file, rec.ID(), settings{Wait: time.Minute, Quiet: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if d := p.Description(); !strings.HasPrefix(d.URL, "tcp://127.0.0.1:") || len(d.Frames) != 3 {
			t.Errorf("%s, %d frames", d.URL, len(d.Frames))
		}
		r, err := p.Send(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.Code != "ok" || r.Sent != 3 || r.Received != 4 {
			t.Errorf("%s %s %s, %d up, %d down, %q", r.Comparison, r.Code, r.Message, r.Sent, r.Received, r.Concluded)
		}
		<-done
	}
	if s.ended != 3 || s.wrong > 0 {
		t.Errorf("%+v", s)
	}
	_ = listener.Close()
	p, err := newPlan(t.Context(), file, rec.ID(), settings{})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := p.Send(t.Context(), nil); err != nil || r.Comparison != NotSent || r.Reason != "no_connection" {
		t.Errorf("%+v, %v", r, err)
	}
}
