package flow

import (
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"unwire/captures"
	"unwire/captures/transfer"
)

// An exchangeDraft is an exchange that was converted completely and can be recorded.
type exchangeDraft struct {
	// ex is the converted exchange without its body.
	ex captures.Exchange
	// chunks are the bytes of the request and response bodies with their times, in the order of arrival.
	chunks []captures.Chunk

	// duration is the time from the start to the end of the exchange.
	duration time.Duration
	// outcome is how the exchange ended, such as complete or canceled.
	outcome captures.Outcome
}

// addChunk adds a chunk that arrived at the time at; start is when the exchange began. Both are in seconds
// since 1970. If chunks are not in order, a later one gets the time of the one before.
func (x *exchangeDraft) addChunk(c captures.Chunk, start, at float64) {
	c.T = elapsed(start, at)
	if n := len(x.chunks); n > 0 {
		c.T = max(c.T, x.chunks[n-1].T)
	}
	x.duration = max(x.duration, c.T)
	x.chunks = append(x.chunks, c)
}

// WebSocket close codes that are never sent in a close frame. They mean, in this order: the close frame had no
// code; there was no close frame; the TLS handshake failed.
//
// Source: RFC 6455, section 7.4.1
const (
	closeWithoutCode = 1005
	closeAbnormal    = 1006
	closeTLSFailed   = 1015
)

// connection converts a flow of type "tcp", i.e. a connection that did not carry HTTP.
func (c *conversion) connection(flow *dictReader) error {
	messages := flow.messages("messages", false)
	client, server := flow.dict("client_conn"), flow.dict("server_conn")
	start, end := 0.0, 0.0
	if len(messages) > 0 {
		start = messages[0].at
	}

	// The start is that of the client's connection, the end that of the last one.
	for _, n := range []*dictReader{client, server} {
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

	// mitmproxy writes no start time for some failed connections; a capture needs one for each
	// exchange.
	if start == 0 {
		c.rep.Problem(c.place, "client_conn.timestamp_start is missing; the year 1970 is used instead")
		start = 1 // 0 is no time to a capture
	}

	c.connections(flow)
	ex := &c.ex
	ex.Started, ex.Transport = timeOf(start), captures.RawTCP
	if ex.TLS.Version != "" {
		ex.Transport = captures.RawTLS
	}

	// The configured name of the server says more than the address that it resolved to.
	host := ex.Server
	if server != nil {
		host = server.address("address", "peername", "ip_address")
	}
	if host == "" {
		flow.reportType("server_conn.address", "address")
	}
	ex.URL = string(ex.Transport) + "://" + host
	for _, m := range messages {
		c.addChunk(captures.Chunk{Dir: m.dir, Data: m.data}, start, m.at)
	}
	c.duration = max(c.duration, elapsed(start, end))

	// Without an end time, mitmproxy was stopped while the connection was open.
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

// addWebSocket converts the WebSocket messages of a flow whose request was a handshake. start is when that
// request began, in seconds since 1970.
func (c *conversion) addWebSocket(flow *dictReader, start float64) error {
	n := flow.dict("websocket")
	if n == nil {
		return nil
	}

	// The WebSocket begins when the response is complete.
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
	s := &exchangeDraft{ex: captures.Exchange{
		Transport: captures.WebSocket, URL: scheme + "://" + rest, HTTP: c.ex.HTTP, Started: timeOf(began),
		Client: c.ex.Client, Server: c.ex.Server, TLS: c.ex.TLS, Source: c.ex.Source,
	}}
	c.addMessages(s, n, began)
	c.endWebSocket(s, n, began)

	// The handshake was answered, so an error belongs to the WebSocket.
	if c.outcome == captures.Reset {
		s.outcome, s.ex.Error = c.outcome, c.ex.Error
		s.duration = max(s.duration, c.duration-elapsed(start, began))
		c.outcome, c.ex.Error, c.duration = captures.Complete, "", elapsed(start, began)
	}
	c.webSocket = s
	return firstError(n)
}

// separateWebSocket converts a flow of type "websocket". Until format version 11, such a flow contains the
// messages, and another one the handshake.
func (c *conversion) separateWebSocket(flow *dictReader) error {
	messages := flow.messages("messages", true)
	start := 1.0
	if len(messages) > 0 {
		start = messages[0].at
	} else {
		c.rep.Problem(c.place, "the flow has no messages, so its time is unknown; the year 1970 is used instead")
	}

	// Such a flow has no URL, only an address.
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

	// The metadata refers to the flow of the handshake.
	if n := flow.dict("metadata"); n != nil {
		c.handshake = n.text("websocket_handshake")
	}
	c.addMessages(&c.exchangeDraft, flow, start)
	c.outcome = captures.Incomplete
	if flow.values["close_sender"] != nil {
		c.outcome = captures.Complete
	}
	if n := flow.dict("error"); n != nil {
		c.outcome, ex.Error = captures.Reset, transfer.Clip(n.text("msg"))
	}
	return firstError(flow, server)
}

// addMessages adds each message of the WebSocket flow n to the draft as a chunk. start is when the exchange
// began, in seconds since 1970.
func (c *conversion) addMessages(to *exchangeDraft, n *dictReader, start float64) {
	dropped, injected := 0, 0
	for _, m := range n.messages("messages", true) {
		to.addChunk(captures.Chunk{Dir: m.dir, Opcode: m.opcode | captures.OpFinal, Data: m.data}, start, m.at)
		if m.dropped {
			dropped++
		}
		if m.injected {
			injected++
		}
	}
	if dropped > 0 {
		c.rep.Problem(c.place, "mitmproxy did not forward %[2]d of %[1]smessages", n.name, dropped)
	}
	if injected > 0 {
		c.rep.Problem(c.place, "mitmproxy itself sent %[2]d of %[1]smessages", n.name, injected)
	}
}

// endWebSocket sets the outcome of a WebSocket and adds its close frame, which the flow does not list among the
// messages. start is when the exchange began, in seconds since 1970.
func (c *conversion) endWebSocket(to *exchangeDraft, n *dictReader, start float64) {
	end, ended := n.seconds("timestamp_end")
	if ended {
		to.duration = max(to.duration, elapsed(start, end))
	}
	byClient, known := n.values["closed_by_client"].(bool)
	code := n.integer("close_code")
	switch {
	case code == closeAbnormal || code == closeTLSFailed:
		to.outcome, to.ex.Error = captures.Reset, "the WebSocket ended without a close frame"
		return
	case !known && !ended:
		to.outcome = captures.Incomplete
		return
	}

	// closed_by_client is null if mitmproxy has seen no close frame.
	to.outcome = captures.Complete
	if !known {
		return
	}

	// Restore the close frame from what the flow has of it.
	frame := captures.Chunk{Dir: captures.Down, Opcode: captures.OpClose | captures.OpFinal}
	if byClient {
		frame.Dir = captures.Up
	}
	if code > 0 && code <= 0xffff && code != closeWithoutCode {
		frame.Data = append(binary.BigEndian.AppendUint16(nil, uint16(code)), n.text("close_reason")...)
	}
	to.addChunk(frame, start, max(end, start+to.duration.Seconds()))
}

// A flowMessage is a WebSocket message, or bytes of a TCP connection that arrived together.
type flowMessage struct {
	// opcode is the WebSocket opcode of the message; 0 for TCP.
	opcode captures.Opcode
	// dir is the direction of the message: from the client (up) or from the server (down).
	dir captures.Direction
	// data is the payload of the message, decompressed.
	data []byte
	// at is the time of the message, in seconds since 1970.
	at float64

	// dropped means that mitmproxy did not forward the message.
	dropped bool
	// injected means that the user of mitmproxy sent the message, instead of the client or server.
	injected bool
}

// messages returns the messages in a member of the flow, which must be a list. opcodes means that they are
// WebSocket messages, which begin with an opcode.
func (n *dictReader) messages(member string, opcodes bool) []flowMessage {
	list, ok := n.values[member].([]any)
	if !ok && n.values[member] != nil {
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

// readMessage converts one message v of a WebSocket or TCP flow, a list of values. opcodes means that the list
// begins with a WebSocket opcode. ok is false if the list is invalid.
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

	// A message without a time or a direction is invalid.
	fromClient, ok := list[0].(bool)
	if m.dir = captures.Down; fromClient {
		m.dir = captures.Up
	}
	data, isText := text(list[1])
	m.data = []byte(data)
	when := dictReader{values: map[string]any{"at": list[2]}}
	at, known := when.seconds("at")
	m.at = at

	// These two were added in later versions.
	if len(list) > 3 {
		m.dropped, _ = list[3].(bool)
	}
	if len(list) > 4 {
		m.injected, _ = list[4].(bool)
	}
	return m, ok && isText && known
}

// firstError returns the first error that occurred in any of the dictionaries, some of which may be nil.
func firstError(nodes ...*dictReader) error {
	for _, n := range nodes {
		if n != nil && n.err != nil {
			return n.err
		}
	}
	return nil
}
