package flow

import (
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"unwire/captures"
	"unwire/captures/transfer"
)

// A converted is an exchange as it will be recorded.
type converted struct {
	ex       captures.Exchange
	chunks   []captures.Chunk
	duration time.Duration
	outcome  captures.Outcome
}

// add adds what passed at a time in seconds, not before what was added last.
func (x *converted) add(c captures.Chunk, start, at float64) {
	c.T = since(start, at)
	if n := len(x.chunks); n > 0 {
		c.T = max(c.T, x.chunks[n-1].T)
	}
	x.duration = max(x.duration, c.T)
	x.chunks = append(x.chunks, c)
}

// The codes of a WebSocket's end that are in no close frame: that it had no code, and that
// there was none.
//
// Source: RFC 6455, section 7.4.1
const (
	closeWithoutCode = 1005
	closeAbnormal    = 1006
	closeTLSFailed   = 1015
)

// connection makes the exchange of a flow of type tcp.
func (c *conversion) connection(flow *node) error {
	messages := flow.messages("messages", false)
	client, server := flow.dict("client_conn"), flow.dict("server_conn")
	start, end := 0.0, 0.0
	if len(messages) > 0 {
		start = messages[0].at
	}
	for _, n := range []*node{client, server} {
		if n == nil {
			continue
		}
		if at, ok := n.seconds("timestamp_start"); ok && n == client {
			start = at
		}
		if at, ok := n.seconds("timestamp_end"); ok {
			end = max(end, at)
		}
	}
	if err := firstError(flow, client, server); err != nil {
		return err
	}
	if start == 0 {
		c.rep.Problem(c.place, "client_conn.timestamp_start: missing: 1970 is taken")
		start = 1 // 0 is no time to a capture
	}

	c.connections(flow)
	ex := &c.ex
	ex.Started, ex.Transport = timeOf(start), captures.RawTCP
	if ex.TLS.Version != "" {
		ex.Transport = captures.RawTLS
	}
	host := ex.Server
	if server != nil {
		host = server.address("address", "peername", "ip_address")
	}
	if host == "" {
		flow.reportType("server_conn.address", "address")
	}
	ex.URL = string(ex.Transport) + "://" + host
	for _, m := range messages {
		c.add(captures.Chunk{Dir: m.dir, Data: m.data}, start, m.at)
	}
	c.duration = max(c.duration, since(start, end))

	c.outcome = captures.Incomplete
	if end > 0 {
		c.outcome = captures.Complete
	}
	if n := flow.dict("error"); n != nil {
		c.outcome, ex.Error = captures.Reset, transfer.Clip(n.text("msg"))
		if len(messages) == 0 {
			c.outcome = captures.Failed
		}
	}
	return firstError(flow, client, server)
}

// webSocket makes the exchange of the messages of a flow whose request was a handshake.
func (c *conversion) webSocket(flow *node, start float64) error {
	n := flow.dict("websocket")
	if n == nil {
		return nil
	}
	began := start + c.duration.Seconds()
	if response := flow.dict("response"); response != nil {
		if at, ok := response.seconds("timestamp_end"); ok {
			began = at
		}
	}
	scheme, rest, _ := strings.Cut(c.ex.URL, "://")
	if scheme == "http" || scheme == "https" {
		scheme = "ws" + strings.TrimPrefix(scheme, "http")
	}
	s := &converted{ex: captures.Exchange{
		Transport: captures.WebSocket, URL: scheme + "://" + rest, HTTP: c.ex.HTTP, Started: timeOf(began),
		Client: c.ex.Client, Server: c.ex.Server, TLS: c.ex.TLS, Source: c.ex.Source,
	}}
	c.addMessages(s, n, began)
	c.endSocket(s, n, began)

	// What went wrong then is of the WebSocket: its handshake was answered.
	if c.outcome == captures.Reset {
		s.outcome, s.ex.Error = c.outcome, c.ex.Error
		s.duration = max(s.duration, c.duration-since(start, began))
		c.outcome, c.ex.Error, c.duration = captures.Complete, "", since(start, began)
	}
	c.socket = s
	return firstError(n)
}

// oldSocket makes the exchange of a flow of type websocket, which versions up to 11 have
// in addition to that of the handshake.
func (c *conversion) oldSocket(flow *node) error {
	messages := flow.messages("messages", true)
	start := 1.0
	if len(messages) > 0 {
		start = messages[0].at
	} else {
		c.rep.Problem(c.place, "messages: there are none to tell the time: 1970 is taken")
	}
	c.connections(flow)
	ex := &c.ex
	ex.Transport, ex.Started = captures.WebSocket, timeOf(start)
	scheme, host := "ws", ex.Server
	if ex.TLS.Version != "" {
		scheme = "wss"
	}
	server := flow.dict("server_conn")
	if server != nil {
		host = server.address("address", "peername", "ip_address")
	}
	if host == "" {
		flow.reportType("server_conn.address", "address")
	}
	ex.URL = scheme + "://" + host
	if n := flow.dict("metadata"); n != nil {
		c.handshake = n.text("websocket_handshake")
	}
	c.addMessages(&c.converted, flow, start)
	c.outcome = captures.Incomplete
	if flow.members["close_sender"] != nil {
		c.outcome = captures.Complete
	}
	if n := flow.dict("error"); n != nil {
		c.outcome, ex.Error = captures.Reset, transfer.Clip(n.text("msg"))
	}
	return firstError(flow, server)
}

// addMessages makes a chunk of each message of a WebSocket.
func (c *conversion) addMessages(to *converted, n *node, start float64) {
	dropped, injected := 0, 0
	for _, m := range n.messages("messages", true) {
		to.add(captures.Chunk{Dir: m.dir, Opcode: m.opcode | captures.OpFinal, Data: m.data}, start, m.at)
		if m.dropped {
			dropped++
		}
		if m.injected {
			injected++
		}
	}
	if dropped > 0 {
		c.rep.Problem(c.place, "%smessages: mitmproxy did not forward %d of them", n.name, dropped)
	}
	if injected > 0 {
		c.rep.Problem(c.place, "%smessages: mitmproxy made %d of them", n.name, injected)
	}
}

// endSocket tells how a WebSocket ended. The close frame is not among the messages.
func (c *conversion) endSocket(to *converted, n *node, start float64) {
	end, ended := n.seconds("timestamp_end")
	if ended {
		to.duration = max(to.duration, since(start, end))
	}
	byClient, known := n.members["closed_by_client"].(bool)
	code := n.integer("close_code")
	switch {
	case code == closeAbnormal || code == closeTLSFailed:
		to.outcome, to.ex.Error = captures.Reset, "the WebSocket ended without a close frame"
		return
	case !known && !ended:
		to.outcome = captures.Incomplete
		return
	}
	to.outcome = captures.Complete
	if !known {
		return
	}
	frame := captures.Chunk{Dir: captures.Down, Opcode: captures.OpClose | captures.OpFinal}
	if byClient {
		frame.Dir = captures.Up
	}
	if code > 0 && code <= 0xffff && code != closeWithoutCode {
		frame.Data = append(binary.BigEndian.AppendUint16(nil, uint16(code)), n.text("close_reason")...)
	}
	to.add(frame, start, max(end, start+to.duration.Seconds()))
}

// A flowMessage is one of a WebSocket, or a run of bytes of a TCP connection.
type flowMessage struct {
	opcode            captures.Opcode
	dir               captures.Direction
	data              []byte
	at                float64
	dropped, injected bool
}

// messages reads a list of messages: those of a WebSocket have an opcode first.
func (n *node) messages(member string, opcodes bool) []flowMessage {
	list, ok := n.members[member].([]any)
	if !ok && n.members[member] != nil {
		n.reportType(member, "list")
	}
	var out []flowMessage
	for i, v := range list {
		m, ok := readMessage(v, opcodes)
		if !ok {
			n.reportType(fmt.Sprintf("%s[%d]", member, i), "message")
			return out
		}
		out = append(out, m)
	}
	return out
}

func readMessage(v any, opcodes bool) (m flowMessage, ok bool) {
	list, _ := v.([]any)
	if opcodes && len(list) > 0 {
		op, ok := list[0].(int64)
		if m.opcode = captures.Opcode(op & 0xff); !ok || int64(m.opcode) != op || !m.opcode.Known() {
			return m, false
		}
		list = list[1:]
	}
	if len(list) < 3 {
		return m, false
	}
	fromClient, ok := list[0].(bool)
	if m.dir = captures.Down; fromClient {
		m.dir = captures.Up
	}
	data, isText := text(list[1])
	m.data = []byte(data)
	when := node{members: map[string]any{"at": list[2]}}
	at, known := when.seconds("at")
	m.at = at
	if len(list) > 3 {
		m.dropped, _ = list[3].(bool)
	}
	if len(list) > 4 {
		m.injected, _ = list[4].(bool)
	}
	return m, ok && isText && known
}

// firstError is the first error of dictionaries, some of which may be missing.
func firstError(nodes ...*node) error {
	for _, n := range nodes {
		if n != nil && n.err != nil {
			return n.err
		}
	}
	return nil
}
