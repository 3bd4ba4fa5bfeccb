package agent_test

import (
	"encoding/binary"
	"errors"
	"io"
	"testing"
	"time"

	"unwire/decode/envelope"
	"unwire/replay/agent"
	"unwire/replay/agent/internal/message"
	"unwire/replay/agent/turn"
)

// read reads a stream that may end in an error, and answers no call.
func read(t *testing.T, s *agent.Stream) (events int, err error) {
	t.Helper()
	for {
		event, err := s.Next(t.Context())
		if errors.Is(err, io.EOF) {
			return events, nil
		}
		if err != nil {
			return events, err
		}
		if _, ok := event.(turn.Ended); !ok {
			events++
		}
	}
}

// TestHostileServers breaks the protocol in every way that a stream could notice.
func TestHostileServers(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	exec := func(id int, call string) message.Message {
		m := p.definitions.Server()
		m.At("exec_server_message").Set("id", id).At("mcp_args").Set("name", "add").Set("tool_call_id", call)
		return m
	}
	giant := binary.BigEndian.AppendUint32([]byte{0}, 1<<31)
	for name, test := range map[string]struct {
		send func(c *peerCall)
		code string
	}{
		"a frame of 2 GB":        {func(c *peerCall) { c.raw(giant); c.raw(make([]byte, 1<<20)); close(c.done) }, "*"},
		"no message":             {func(c *peerCall) { c.sendBytes(0, []byte("\x0a\xff\xff")) }, "upstream_failed"},
		"a text that is none":    {func(c *peerCall) { c.sendBytes(0, []byte("\x0a\x05\x0a\x03\x0a\x01\xff")) }, "upstream_failed"},
		"messages within others": {func(c *peerCall) { c.sendBytes(0, nested(10_000)) }, "*"},
		"a compressed nothing":   {func(c *peerCall) { c.sendBytes(envelope.Compressed, []byte("no gzip")) }, "*"},
		"an end that is none":    {func(c *peerCall) { c.sendBytes(envelope.EndStream, []byte("no JSON")) }, "*"},
		"two calls of one id":    {func(c *peerCall) { c.send(exec(1, "a")); c.send(exec(1, "b")) }, "protocol_error"},
		"one name for two calls": {func(c *peerCall) { c.send(exec(1, "a")); c.send(exec(2, "a")); c.end() }, ""},
		"an abort of nothing": {func(c *peerCall) {
			m := p.definitions.Server()
			m.At("exec_server_control_message", "abort").Set("id", 77)
			c.send(m)
			c.end()
		}, ""},
		"two ends of a turn": {func(c *peerCall) {
			m := p.definitions.Server()
			m.At("interaction_update", "turn_ended").Set("input_tokens", -5)
			c.send(m)
			c.end()
		}, ""},
		"an end in a frame": {func(c *peerCall) { c.raw([]byte{0, 0, 0, 0, 9, 1}); close(c.done) }, "no_end_of_stream"},
		"nothing":           {func(c *peerCall) { close(c.done) }, "no_end_of_stream"},
	} {
		t.Run(name, func(t *testing.T) {
			s, c := p.open(withTool(p, "add"))
			test.send(c)
			_, err := read(t, s)
			switch {
			case test.code == "" && err != nil, test.code != "" && err == nil:
				t.Errorf("got %v, want the code %q", err, test.code)
			case err != nil && test.code != "*" && turn.AsError(err).Code != test.code:
				t.Errorf("got %s (%v), want %s", turn.AsError(err).Code, err, test.code)
			}
			s.Close()
		})
	}
}

// raw writes bytes that are no envelope.
func (c *peerCall) raw(data []byte) {
	_, _ = c.w.Write(data) // the client may have gone
	c.flush()
}

// nested is a message in which a field of the state holds itself many times.
func nested(depth int) []byte {
	data := []byte{}
	for range depth {
		data = append(binary.AppendUvarint([]byte{0x0a}, uint64(len(data))), data...)
	}
	return data
}

// TestManyCalls asks for more calls than a client keeps open: the rest is refused.
func TestManyCalls(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	s, c := p.open(withTool(p, "add"))
	for i := range 200 {
		m := p.definitions.Server()
		m.At("exec_server_message").Set("id", i).At("mcp_args").Set("name", "add")
		c.send(m)
	}
	refused := 0
	for refused < 200-128 {
		if m := c.next(); m.Has("exec_client_message", "mcp_result", "rejected") {
			refused++
		}
	}
	events := 0
	for range 128 {
		if event, err := s.Next(t.Context()); err != nil {
			t.Fatal(err)
		} else if _, ok := event.(turn.Calling); ok {
			events++
		}
	}
	if events != 128 {
		t.Errorf("%d calls came", events)
	}
	c.end()
}

// TestFullStore stores more than a client keeps for a server.
func TestFullStore(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	_, c := p.open()
	full := false
	for i := range 20 {
		m := p.definitions.Server()
		m.At("kv_server_message", "set_blob_args").Set("blob_id", []byte{byte(i)}).Set("blob_data", make([]byte, 4<<20))
		c.send(m)
		full = c.next().Has("kv_client_message", "set_blob_result", "error")
	}
	if !full {
		t.Error("80 MB were stored")
	}
	c.end()
}

// TestServerThatDoesNotEnd leaves the stream open after the turn.
func TestServerThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	s, c := p.open()
	m := p.definitions.Server()
	m.At("interaction_update", "turn_ended")
	c.send(m)
	begun := time.Now()
	if _, _, ended, err := finish(t, s, echo); err != nil || ended == nil {
		t.Errorf("got %v, %v", ended, err)
	}
	if took := time.Since(begun); took > 8*time.Second {
		t.Errorf("it took %v", took)
	}
}

// FuzzServer plays what a server may send, as frames of a stream with one tool. A stream
// ends soon, whatever comes.
func FuzzServer(f *testing.F) {
	p := newPeer(f)
	for _, seed := range []string{"", "0a040a024869", "0a060a040a024869", "0a027200", "12085a020a00", "1208080112041a020a00", "22021200", "3a021200", "2a020a00", "c23e02"} {
		f.Add([]byte(seed), byte(0), true)
	}
	for _, fd := range kinds(p.definitions, "ExecServerMessage", "message") {
		m := p.definitions.Server()
		m.At("exec_server_message").Set("id", 3).At(string(fd.Name()))
		f.Add(m.Bytes(), byte(0), true)
		f.Add(m.Bytes(), byte(1), false)
	}
	shared := p
	f.Fuzz(func(t *testing.T, data []byte, flags byte, again bool) {
		p := &peer{t: t, definitions: shared.definitions, client: shared.client, calls: shared.calls}
		s, c := p.open(withTool(p, "add", "bash", "read"))
		c.sendBytes(envelope.Flags(flags), data)
		if again {
			c.sendBytes(0, data)
		}
		c.end()
		for {
			event, err := s.Next(t.Context())
			if err != nil {
				break
			}
			if calling, ok := event.(turn.Calling); ok {
				_ = s.Answer(turn.Result{CallID: calling.Call.ID, IsError: again}) // the stream may have ended
			}
		}
		s.Close()
	})
}
