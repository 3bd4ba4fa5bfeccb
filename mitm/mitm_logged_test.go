package mitm

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/coder/websocket"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"unwire/captures"
)

// A journal has the hashes of the messages of each stream, in their order.
type journal struct {
	mu      sync.Mutex
	streams map[string]*[2][]digest
}

// A digest identifies a message.
type digest [8]byte

func digestOf(message []byte) digest {
	sum := sha256.Sum256(message)
	return digest(sum[:8])
}

func (j *journal) add(stream string, dir captures.Direction, message []byte) {
	d := digestOf(message)
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.streams == nil {
		j.streams = make(map[string]*[2][]digest)
	}
	if j.streams[stream] == nil {
		j.streams[stream] = new([2][]digest)
	}
	j.streams[stream][dir] = append(j.streams[stream][dir], d)
}

// A messenger is one end of a stream of messages.
type messenger interface {
	send(message []byte) error

	// receive returns io.EOF at the end.
	receive() ([]byte, error)

	// end ends the direction of the client.
	end() error
}

// answer is what the servers answer: the message, backwards.
func answer(message []byte) []byte {
	out := slices.Clone(message)
	slices.Reverse(out)
	return out
}

// serve answers every message, and logs both.
func (j *journal) serve(stream string, m messenger) error {
	for {
		message, err := m.receive()
		if err != nil {
			return err
		}
		j.add(stream, captures.Up, message)
		out := answer(message)
		j.add(stream, captures.Down, out)
		if err := m.send(out); err != nil {
			return err
		}
	}
}

// converse sends messages and reads the answers meanwhile.
func (j *journal) converse(stream string, m messenger, messages int, random *rand.Rand) error {
	failed := make(chan error, 1)
	go func() {
		for i := range messages {
			answer, err := m.receive()
			if err != nil {
				failed <- fmt.Errorf("answer %d: %w", i, err)
				return
			}
			j.add(stream, captures.Down, answer)
		}
		failed <- nil
	}()
	for range messages {
		message := randomMessage(random)
		j.add(stream, captures.Up, message)
		if err := m.send(message); err != nil {
			return errors.Join(err, <-failed)
		}
	}
	if err := <-failed; err != nil {
		return err
	}
	return m.end()
}

// randomMessage is a short one mostly.
func randomMessage(random *rand.Rand) []byte {
	size := random.IntN(300)
	switch p := random.IntN(1000); {
	case p == 0:
		size = random.IntN(300_000)
	case p < 30:
		size = random.IntN(20_000)
	}
	out := make([]byte, size)
	for i := range out {
		out[i] = byte(random.Uint32())
	}
	return out
}

// A byteStream has messages with a length before each.
type byteStream struct {
	net.Conn
	r *bufio.Reader
}

func (s *byteStream) send(message []byte) error {
	_, err := s.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(message))), message...))
	return err
}

func (s *byteStream) receive() ([]byte, error) { return readSized(s.r) }
func (s *byteStream) end() error               { return s.Conn.(halfCloserOnce).CloseWrite() }

func readSized(r io.Reader) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	out := make([]byte, binary.BigEndian.Uint32(size[:]))
	_, err := io.ReadFull(r, out)
	return out, err
}

type webSocketStream struct {
	ctx context.Context
	*websocket.Conn
}

func (s webSocketStream) send(message []byte) error {
	return s.Write(s.ctx, websocket.MessageBinary, message)
}

func (s webSocketStream) receive() ([]byte, error) {
	_, p, err := s.Read(s.ctx)
	if websocket.CloseStatus(err) == websocket.StatusNormalClosure {
		return nil, io.EOF
	}
	return p, err
}

func (s webSocketStream) end() error { return s.Close(websocket.StatusNormalClosure, "") }

// A grpcMessenger is a grpc.ClientStream or a grpc.ServerStream.
type grpcMessenger struct {
	stream interface {
		SendMsg(message any) error
		RecvMsg(message any) error
	}
	close func() error
}

func (s grpcMessenger) send(message []byte) error {
	return s.stream.SendMsg(wrapperspb.Bytes(message))
}

func (s grpcMessenger) receive() ([]byte, error) {
	m := new(wrapperspb.BytesValue)
	err := s.stream.RecvMsg(m)
	return m.GetValue(), err
}

func (s grpcMessenger) end() error {
	if err := s.close(); err != nil {
		return err
	}
	if _, err := s.receive(); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

type (
	connectClientStream = connect.BidiStreamForClient[wrapperspb.BytesValue, wrapperspb.BytesValue]
	connectServerStream = connect.BidiStream[wrapperspb.BytesValue, wrapperspb.BytesValue]
)

type connectClientMessenger struct{ *connectClientStream }

func (s connectClientMessenger) send(message []byte) error { return s.Send(wrapperspb.Bytes(message)) }

func (s connectClientMessenger) receive() ([]byte, error) {
	m, err := s.Receive()
	return m.GetValue(), err
}

func (s connectClientMessenger) end() error {
	if err := s.CloseRequest(); err != nil {
		return err
	}
	if _, err := s.receive(); !errors.Is(err, io.EOF) {
		return err
	}
	return s.CloseResponse()
}

type connectServerMessenger struct{ *connectServerStream }

func (s connectServerMessenger) send(message []byte) error { return s.Send(wrapperspb.Bytes(message)) }

func (s connectServerMessenger) receive() ([]byte, error) {
	m, err := s.Receive()
	return m.GetValue(), err
}

func (s connectServerMessenger) end() error { return nil }

// A loggedOrigin serves streams of messages by each transport.
type loggedOrigin struct {
	journal
	http *httptest.Server // Connect and WebSocket
	grpc string           // address
	raw  *rawOrigin
}

const bidiMethod = "/unwire.test.v1.Log/Bidi"

func newLoggedOrigin(t *testing.T) *loggedOrigin {
	t.Helper()
	o := new(loggedOrigin)
	mux := http.NewServeMux()
	mux.Handle(bidiMethod, connect.NewBidiStreamHandler(bidiMethod, func(_ context.Context, s *connectServerStream) error {
		if err := o.serve(s.RequestHeader().Get(caseHeader), connectServerMessenger{s}); !errors.Is(err, io.EOF) {
			return err
		}
		return nil
	}))
	mux.HandleFunc("/websocket/", func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionContextTakeover, CompressionThreshold: 1})
		if err != nil {
			return
		}
		defer c.CloseNow()
		c.SetReadLimit(-1)
		_ = o.serve(strings.TrimPrefix(r.URL.Path, "/websocket/"), webSocketStream{r.Context(), c})
	})
	o.http = newTLSOrigin(t, true, mux)
	o.http.TLS.NextProtos = []string{protoH2, protoH1}

	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	creds := credentials.NewTLS(&tls.Config{Certificates: o.http.TLS.Certificates, NextProtos: []string{protoH2}})
	g := grpc.NewServer(grpc.Creds(creds), grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
		md, _ := metadata.FromIncomingContext(s.Context())
		if err := o.serve(strings.Join(md.Get(caseHeader), ""), grpcMessenger{stream: s}); !errors.Is(err, io.EOF) {
			return err
		}
		return nil
	}))
	go func() { _ = g.Serve(ln) }()
	t.Cleanup(g.Stop)
	o.grpc = ln.Addr().String()

	o.raw = newRawOrigin(t, true, func(conn net.Conn) {
		s := &byteStream{conn, bufio.NewReader(conn)}
		name, err := s.receive()
		if err != nil {
			return
		}
		if err := o.serve(string(name), s); errors.Is(err, io.EOF) {
			_ = s.end()
		}
	})
	return o
}

// open returns a function that opens a stream of a transport.
func (o *loggedOrigin) open(t *testing.T, ctx context.Context, l *lane, transport string) func(stream string) (messenger, error) {
	t.Helper()
	switch transport {
	case "gRPC":
		c := l.dialGRPC(t, o.grpc)
		return func(stream string) (messenger, error) {
			ctx := metadata.AppendToOutgoingContext(ctx, caseHeader, stream)
			s, err := c.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, bidiMethod)
			if err != nil {
				return nil, err
			}
			return grpcMessenger{s, s.CloseSend}, nil
		}
	case "Connect", "Connect, gzip":
		var options []connect.ClientOption
		if transport != "Connect" {
			options = append(options, connect.WithSendGzip())
		}
		return func(stream string) (messenger, error) {
			c := connect.NewClient[wrapperspb.BytesValue, wrapperspb.BytesValue](naming{l.client(true), stream}, l.base+bidiMethod, options...)
			return connectClientMessenger{c.CallBidiStream(ctx)}, nil
		}
	case "WebSocket", "WebSocket, compressed":
		mode := websocket.CompressionDisabled
		if transport != "WebSocket" {
			mode = websocket.CompressionContextTakeover
		}
		return func(stream string) (messenger, error) {
			c, _, err := websocket.Dial(ctx, l.base+"/websocket/"+stream, &websocket.DialOptions{HTTPClient: l.client(false), CompressionMode: mode, CompressionThreshold: 1})
			if err != nil {
				return nil, err
			}
			c.SetReadLimit(-1)
			return webSocketStream{ctx, c}, nil
		}
	}
	return func(stream string) (messenger, error) {
		conn, err := l.dial(t, o.raw.addr, "127.0.0.1")
		if err != nil {
			return nil, err
		}
		s := &byteStream{conn, bufio.NewReader(conn)}
		return s, s.send([]byte(stream))
	}
}

// recordedMessages reads the messages of an exchange, and which stream they are of; "": it
// is a handshake.
func (b *testProxy) recordedMessages(ex *captures.Exchange) (stream string, messages [2][][]byte, err error) {
	var whole [2]bytes.Buffer
	var part [2][]byte
	for c, err := range b.store.Chunks(context.Background(), ex.ID, 0) {
		switch {
		case err != nil:
			return "", messages, err
		case ex.Transport != captures.WebSocket:
			whole[c.Dir].Write(c.Data)
		case c.Opcode.Kind() <= captures.OpBinary:
			part[c.Dir] = append(part[c.Dir], c.Data...)
			if c.Opcode&captures.OpFinal != 0 {
				messages[c.Dir] = append(messages[c.Dir], part[c.Dir])
				part[c.Dir] = nil
			}
		}
	}
	switch {
	case ex.Transport == captures.WebSocket:
		_, stream, _ = strings.Cut(ex.URL, "/websocket/")
		return stream, messages, nil
	case ex.Transport != "":
		for dir := range whole {
			if messages[dir], err = readAll(&whole[dir], readSized); err != nil {
				return "", messages, err
			}
		}
		if len(messages[captures.Up]) == 0 {
			return "", messages, errors.New("an empty stream")
		}
		stream, messages[captures.Up] = string(messages[captures.Up][0]), messages[captures.Up][1:]
		return stream, messages, nil
	case ex.Status == http.StatusSwitchingProtocols:
		return "", messages, nil
	}
	for dir := range whole {
		if messages[dir], err = readAll(&whole[dir], readEnvelope); err != nil {
			return "", messages, err
		}
	}
	return ex.RequestHeaders.Get(caseHeader), messages, nil
}

func readAll(r io.Reader, read func(io.Reader) ([]byte, error)) (out [][]byte, err error) {
	for {
		message, err := read(r)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		out = append(out, message)
	}
}

// readEnvelope reads the value of a message of Connect or gRPC. Connect's last one is the end.
func readEnvelope(r io.Reader) ([]byte, error) {
	var flags [1]byte
	if _, err := io.ReadFull(r, flags[:]); err != nil {
		return nil, err
	}
	p, err := readSized(r)
	if err != nil {
		return nil, io.ErrUnexpectedEOF
	}
	if flags[0]&2 != 0 {
		return nil, io.EOF
	}
	if flags[0]&1 != 0 {
		z, err := gzip.NewReader(bytes.NewReader(p))
		if err != nil {
			return nil, err
		}
		if p, err = io.ReadAll(z); err != nil {
			return nil, err
		}
	}
	m := new(wrapperspb.BytesValue)
	err = proto.Unmarshal(p, m)
	return m.GetValue(), err
}

// TestRecordedIsWhatTheServerLogged has many streams of each transport at once, and
// compares each message that is recorded with the one that the server logged, in both
// directions and in their order: 100,000 messages in a long run.
func TestRecordedIsWhatTheServerLogged(t *testing.T) {
	t.Parallel()
	total := 6_000
	if os.Getenv("UNWIRE_LONG") != "" {
		total = 100_000
	}
	transports := []string{"gRPC", "Connect", "Connect, gzip", "WebSocket", "WebSocket, compressed", "TLS"}
	const streams = 20
	perStream := (total/2 + len(transports)*streams - 1) / (len(transports) * streams)
	o := newLoggedOrigin(t)
	l := newLane(t, way{name: proxyWay, proxied: true}, o.http, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	began := time.Now()
	var client journal
	var all sync.WaitGroup
	for n, transport := range transports {
		open := o.open(t, ctx, l, transport)
		for i := range streams {
			all.Go(func() {
				stream := fmt.Sprintf("%d-%d", n, i)
				m, err := open(stream)
				if err == nil {
					err = client.converse(stream, m, perStream, rand.New(rand.NewPCG(uint64(n), uint64(i))))
				}
				if err != nil {
					t.Errorf("%s, stream %d: %v", transport, i, err)
				}
			})
		}
	}
	all.Wait()
	passed := time.Since(began)
	if t.Failed() {
		return
	}
	compared, size := o.compare(t, l.bench, &client, (len(transports)+2)*streams)
	if want := 2 * perStream * len(transports) * streams; compared != want {
		t.Errorf("%d messages, want %d", compared, want)
	}
	t.Logf("%d messages of %d streams, %d MB, are what the server logged; passed in %v, compared in %v",
		compared, len(transports)*streams, size>>20, passed.Round(time.Millisecond), (time.Since(began) - passed).Round(time.Millisecond))
}

// compare compares what was recorded, and what the clients logged, with the server's log.
func (o *loggedOrigin) compare(t *testing.T, b *testProxy, client *journal, exchanges int) (compared, size int) {
	t.Helper()
	for _, ex := range b.recorded(exchanges) {
		stream, messages, err := b.recordedMessages(ex)
		if err != nil || ex.Outcome != captures.Complete {
			t.Errorf("exchange %d, stream %q: %v, %s %s", ex.ID, stream, err, ex.Outcome, ex.Error)
		}
		if stream == "" {
			continue
		}
		logged := o.streams[stream]
		if logged == nil {
			t.Errorf("exchange %d: the server has no stream %q, or it is recorded twice", ex.ID, stream)
			continue
		}
		delete(o.streams, stream)
		for dir, list := range messages {
			var got []digest
			for _, m := range list {
				got = append(got, digestOf(m))
				size += len(m)
			}
			if !slices.Equal(got, logged[dir]) {
				t.Errorf("stream %s, direction %d: %d messages are recorded, the server logged %d, or others", stream, dir, len(got), len(logged[dir]))
			}
			if !slices.Equal(client.streams[stream][dir], logged[dir]) {
				t.Errorf("stream %s, direction %d: the client logged others than the server", stream, dir)
			}
			compared += len(got)
		}
	}
	if len(o.streams) > 0 {
		t.Errorf("%d streams are not recorded", len(o.streams))
	}
	return compared, size
}
