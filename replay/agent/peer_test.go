package agent_test

import (
	"context"
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"unwire/decode/envelope"
	"unwire/proto"
	"unwire/replay/agent"
	"unwire/replay/agent/internal/message"
	"unwire/replay/agent/turn"
)

// A peer is a server that does what a test says: a real one, over TLS and HTTP/2.
type peer struct {
	t           testing.TB
	definitions *message.Definitions
	client      *agent.Client
	calls       chan *peerCall
}

// A peerCall is one stream of a peer.
type peerCall struct {
	*peer
	w        http.ResponseWriter
	header   http.Header
	messages chan message.Message // of the client; closed with its half
	done     chan struct{}        // closed to end the handler
	gone     <-chan struct{}      // closed when the client has gone
}

func newPeer(t testing.TB) *peer {
	t.Helper()
	d, err := message.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := &peer{t: t, definitions: d, calls: make(chan *peerCall, 300)}
	server := httptest.NewUnstartedServer(http.HandlerFunc(p.serve))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	p.client, err = agent.New(t.Context(), agent.Options{
		URL: u, RootCAs: roots, Profile: proto.Profile(), Transport: agent.HTTP2,
		Token: func(context.Context) (string, error) { return token, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.client.Close)
	return p
}

func (p *peer) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/connect+proto")
	w.WriteHeader(http.StatusOK)
	c := &peerCall{peer: p, w: w, header: r.Header, messages: make(chan message.Message, 1000), done: make(chan struct{}), gone: r.Context().Done()}
	c.flush()
	go c.receive(p, r.Body)
	gone := r.Context().Done()
	done := c.done
	p.calls <- c
	select {
	case <-done:
	case <-gone:
	}
}

func (c *peerCall) flush() {
	if err := http.NewResponseController(c.w).Flush(); err != nil {
		c.t.Error(err)
	}
}

func (c *peerCall) receive(p *peer, body io.Reader) {
	defer close(c.messages)
	var head [envelope.PrefixLen]byte
	for {
		if _, err := io.ReadFull(body, head[:]); err != nil {
			return
		}
		data := make([]byte, envelope.ParsePrefix(head[:]).Length)
		if _, err := io.ReadFull(body, data); err != nil {
			return
		}
		m := p.definitions.Client()
		if err := m.Parse(data); err != nil {
			p.t.Error(err)
		}
		c.messages <- m
	}
}

// next returns the next message of the client that is no heartbeat.
func (c *peerCall) next() message.Message {
	c.t.Helper()
	for {
		select {
		case m, ok := <-c.messages:
			if !ok {
				c.t.Fatal("the client ended its half")
			}
			if kind, _ := m.Case("message"); kind != "client_heartbeat" {
				return m
			}
		case <-time.After(patience):
			c.t.Fatal("the client sent nothing")
		}
	}
}

// send sends a message of the server.
func (c *peerCall) send(m message.Message) { c.sendBytes(0, m.Bytes()) }

// sendBytes sends an envelope.
func (c *peerCall) sendBytes(flags envelope.Flags, data []byte) {
	if _, err := c.w.Write(envelope.Append(nil, flags, data)); err == nil {
		_ = http.NewResponseController(c.w).Flush()
	}
}

// text sends a piece of the answer.
func (c *peerCall) text(text string) {
	m := c.definitions.Server()
	m.At("interaction_update", "text_delta").Set("text", text)
	c.send(m)
}

// end ends the turn and the stream.
func (c *peerCall) end() {
	m := c.definitions.Server()
	m.At("interaction_update", "turn_ended")
	c.send(m)
	c.sendBytes(envelope.EndStream, []byte("{}"))
	close(c.done)
}

// open starts a turn, and returns both sides of it. The first message was read.
func (p *peer) open(r ...func() (*agent.Stream, error)) (*agent.Stream, *peerCall) {
	p.t.Helper()
	start := func() (*agent.Stream, error) { return p.client.Run(p.t.Context(), "", user("go")) }
	if len(r) > 0 {
		start = r[0]
	}
	s, err := start()
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(s.Close)
	c := <-p.calls
	c.peer = p
	if kind, _ := c.next().Case("message"); kind != "run_request" {
		p.t.Fatalf("the first message is a %s", kind)
	}
	return s, c
}

// withTool opens a turn with tools that take anything.
func withTool(p *peer, names ...string) func() (*agent.Stream, error) {
	return func() (*agent.Stream, error) {
		r := user("go")
		for _, name := range names {
			r.Tools = append(r.Tools, turn.Tool{Name: name})
		}
		return p.client.Run(p.t.Context(), "", r)
	}
}
