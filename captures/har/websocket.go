package har

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"unwire/captures"
	"unwire/captures/transfer"
)

// resourceWebSocket is the value of _resourceType by which Chrome marks WebSockets in HAR files.
const resourceWebSocket = "websocket"

// The types of WebSocket messages in Chrome's HAR extension.
const (
	messageSent     = "send"
	messageReceived = "receive"
	messageError    = "error"
)

// A message is a WebSocket message in Chrome's extension of HAR: Data is plain text, or base64 if it is binary.
type message struct {
	// Type is the sender: "send" for a message from the client, "receive" for one from the server.
	Type string `json:"type"`
	// Time is the time of the message, in seconds since 1970.
	Time number `json:"time"`
	// Opcode is the opcode of the WebSocket message (RFC 6455).
	Opcode number `json:"opcode"`
	// Data is the payload: plain text for a text message, otherwise base64.
	Data string `json:"data"`

	// UnwireEncoding is "base64" if Data is in base64 although the message is not binary: for control frames,
	// and for text that is not valid UTF-8.
	UnwireEncoding string `json:"_encoding,omitempty"`
}

// messagesOf joins the chunks of a WebSocket to HAR messages. marks has one element for each chunk, so that an
// import can restore the chunks.
func messagesOf(started time.Time, chunks []captures.Chunk) ([]message, []chunkMark) {
	type whole struct {
		message
		data []byte
	}
	var all []whole
	marks := make([]chunkMark, 0, len(chunks))
	// open is the index of the unfinished message of each direction; -1 if there is none.
	open := [2]int{-1, -1}
	for _, c := range chunks {
		op, i := c.Opcode.Kind(), open[c.Dir]
		if op != captures.OpContinuation || i < 0 {
			i = len(all)
			all = append(all, whole{message: message{Type: messageSent, Opcode: number(op)}})
			if c.Dir == captures.Down {
				all[i].Type = messageReceived
			}
		}
		all[i].data = append(all[i].data, c.Data...)
		all[i].Time = number(float64(started.Add(c.T).UnixNano()/1000) / 1e6)
		final := c.Opcode&captures.OpFinal != 0

		// Control frames may come between the parts of a message, but are never split.
		if op < captures.OpClose {
			if open[c.Dir] = i; final {
				open[c.Dir] = -1
			}
		}
		marks = append(marks, chunkMark{
			Dir: c.Dir.String(), TNS: int64(c.T), Len: len(c.Data),
			Message: i, Opcode: uint8(op), Final: final, Compressed: c.Opcode&captures.OpCompressed != 0,
		})
	}

	// Text stays readable; other data is encoded.
	messages := make([]message, len(all))
	for i, m := range all {
		messages[i] = m.message
		if op := captures.Opcode(m.Opcode); op == captures.OpText && utf8.Valid(m.data) {
			messages[i].Data = string(m.data)
		} else {
			messages[i].Data = base64.StdEncoding.EncodeToString(m.data)
			if op != captures.OpBinary {
				messages[i].UnwireEncoding = "base64"
			}
		}
	}
	return messages, marks
}

// A webSocketIndex finds, in a capture to be exported, the WebSocket that an HTTP handshake opened.
type webSocketIndex struct {
	// src is the capture that is exported.
	src transfer.Source
	// relations are the links between the exchanges of the capture, which include those from WebSockets to
	// their handshakes.
	relations transfer.Relations
	// byHandshake maps the ID of a handshake to the IDs of the exchanges that it opened.
	byHandshake map[int64][]int64
}

// indexWebSockets reads from a capture which WebSocket belongs to which handshake.
func indexWebSockets(ctx context.Context, src transfer.Source) (*webSocketIndex, error) {
	relations, err := transfer.LoadRelations(ctx, src)
	if err != nil {
		return nil, err
	}
	s := &webSocketIndex{src, relations, make(map[int64][]int64)}
	for id := range relations {
		if handshake := relations.Handshake(id); handshake != 0 {
			s.byHandshake[handshake] = append(s.byHandshake[handshake], id)
		}
	}
	return s, nil
}

// openedBy returns the WebSocket that a handshake opened, or nil. If there are several, it returns the one with
// the smallest ID. It ignores related exchanges of other transports, which contain bytes that are not WebSocket
// frames.
func (s *webSocketIndex) openedBy(ctx context.Context, handshake int64) (first *captures.Exchange, err error) {
	for _, id := range s.byHandshake[handshake] {
		ex, err := s.src.Exchange(ctx, id)
		if errors.Is(err, captures.ErrNoExchange) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if ex.Transport == captures.WebSocket && (first == nil || ex.ID < first.ID) {
			first = ex
		}
	}
	return first, nil
}

// hasEntry reports whether the WebSocket with this ID is written as part of its handshake's HAR entry, and
// needs no entry of its own.
func (s *webSocketIndex) hasEntry(ctx context.Context, id int64) (bool, error) {
	handshake, err := s.src.Exchange(ctx, s.relations.Handshake(id))
	switch {
	case errors.Is(err, captures.ErrNoExchange):
		return false, nil
	case err != nil:
		return false, err
	case handshake.Transport != captures.HTTP:
		return false, nil
	}
	first, err := s.openedBy(ctx, handshake.ID)
	return err == nil && first != nil && first.ID == id, err
}

// putWebSocket adds the messages of a WebSocket to e, which is the entry of its handshake or one of its own,
// and returns the WebSocket's extension.
func (o *Options) putWebSocket(ctx context.Context, s *webSocketIndex, e *entry, ex *captures.Exchange) (*extension, error) {
	h, err := loadExchange(ctx, s.src, ex, o.MaxBody)
	if err != nil {
		return nil, err
	}
	x := headOf(ex, s.relations)
	x.Transport, x.Method, x.URL, x.Status, x.Protocol = ex.Transport, ex.Method, ex.URL, ex.Status, resourceWebSocket
	x.RequestHeaders, x.ResponseHeaders = fieldsOf(ex.RequestHeaders), fieldsOf(ex.ResponseHeaders)
	x.Omitted = h.tooLarge
	e.ResourceType = resourceWebSocket
	if e.Messages = []message{}; !h.tooLarge {
		e.Messages, x.Chunks = messagesOf(ex.Started, h.chunks)
	}
	x.Rewritten, err = s.src.Rewritten(ctx, ex.ID)
	return x, err
}

// webSocketURL converts the http:// or https:// URL of a handshake to ws:// or wss://, as browsers show it.
func webSocketURL(u string) string {
	if rest, ok := strings.CutPrefix(u, "http"); ok {
		return "ws" + rest
	}
	return u
}

// handshakeURL converts a ws:// or wss:// URL to http:// or https://. It is the inverse of
// webSocketURL.
func handshakeURL(u string) string {
	if rest, ok := strings.CutPrefix(u, "ws"); ok {
		return "http" + rest
	}
	return u
}

// An exchangeDraft is an exchange that was converted from a HAR entry and can be recorded.
type exchangeDraft struct {
	// ex is the converted exchange without its body.
	ex captures.Exchange
	// chunks are the bytes of the request and response bodies with their times, in the order of arrival.
	chunks []captures.Chunk

	// duration is the time from the start to the end of the exchange.
	duration time.Duration
	// outcome is how the exchange ended, such as complete or canceled.
	outcome captures.Outcome

	// number is the ID of the exchange in the HAR file, to which relations of other exchanges refer; 0 if it
	// has none.
	number int64
	// relations are the links of the exchange to others, by their numbers in the HAR file.
	relations []transfer.Relation
}

// exportedWebSocket converts a WebSocket from its extension x, as Export writes it. member is the extension's
// name for problem reports.
func (c *conversion) exportedWebSocket(member string, x *extension) *exchangeDraft {
	s := &exchangeDraft{ex: captures.Exchange{Transport: captures.WebSocket}}
	c.applyExtensionHead(member, x, s)
	s.ex.Method, s.ex.URL, s.ex.Status = x.Method, x.URL, min(max(x.Status, 0), 999)
	s.ex.RequestHeaders, _ = c.headers(x.RequestHeaders)
	s.ex.ResponseHeaders, _ = c.headers(x.ResponseHeaders)
	if s.ex.URL == "" {
		s.ex.URL = webSocketURL(c.e.Request.URL)
	}
	if x.Omitted {
		c.problem(member+".omitted", "the file does not contain the messages, because they were too large")
		return s
	}

	// The marks restore the original chunks. If they are invalid, each message is one chunk.
	chunks, err := c.cutMessages(x.Chunks)
	if err != nil {
		c.problem(member+".chunks", "%v; each message is stored as one chunk", err)
		chunks = c.wholeMessages(s.ex.Started)
	}
	s.chunks = chunks
	return s
}

// cutMessages splits the entry's WebSocket messages into chunks. marks describes the chunks in order of
// arrival; all of them must cover the messages exactly.
func (c *conversion) cutMessages(marks []chunkMark) ([]captures.Chunk, error) {
	// Decode all messages first: a chunk may be a part of any.
	rest := make([][]byte, len(c.e.Messages))
	for i := range rest {
		rest[i] = c.messageData(i)
	}
	chunks := make([]captures.Chunk, 0, len(marks))
	for i, m := range marks {
		dir := captures.Up
		if m.Dir == captures.Down.String() {
			dir = captures.Down
		}
		op := captures.Opcode(m.Opcode)
		switch {
		case m.Dir != dir.String():
			return nil, fmt.Errorf("chunk %d: the member dir must be up or down", i)
		case m.Message < 0 || m.Message >= len(rest):
			return nil, fmt.Errorf("chunk %d: the exchange has no WebSocket message %d", i, m.Message)
		case m.Len < 0 || m.Len > len(rest[m.Message]) || m.TNS < 0:
			return nil, fmt.Errorf("chunk %d claims to have %d bytes, but only %d bytes of the body are left", i, m.Len, len(rest[m.Message]))
		case !op.Known():
			return nil, fmt.Errorf("chunk %d: opcode %d is not a WebSocket opcode", i, m.Opcode)
		}
		if m.Final {
			op |= captures.OpFinal
		}
		if m.Compressed {
			op |= captures.OpCompressed
		}
		chunks = append(chunks, captures.Chunk{Dir: dir, T: time.Duration(m.TNS), Data: rest[m.Message][:m.Len], Opcode: op})
		rest[m.Message] = rest[m.Message][m.Len:]
	}

	// Every byte must belong to a chunk.
	for i, b := range rest {
		if len(b) > 0 {
			return nil, fmt.Errorf("%d bytes of message %d belong to no chunk", len(b), i)
		}
	}
	return chunks, nil
}

// chromeWebSocket converts a WebSocket that another tool has written in Chrome's form. It also sets the end of
// the handshake to the time of its response. It returns nil if the server did not accept the WebSocket.
func (c *conversion) chromeWebSocket() *exchangeDraft {
	accepted := c.ex.Status == 101 || c.ex.Status/100 == 2 && c.ex.Method == "CONNECT"
	if c.e.Messages == nil || !accepted && len(c.e.Messages) == 0 {
		return nil
	}

	// The handshake ends before the first message, even if the timings contradict.
	answered := c.sendTime() + fromMillis(c.e.Timings.Wait)
	if len(c.e.Messages) > 0 {
		answered = min(answered, c.messageTime(c.ex.Started, c.e.Messages[0]))
	}
	if answered > c.duration {
		answered = 0
	}
	s := &exchangeDraft{
		ex: captures.Exchange{
			Transport: captures.WebSocket, URL: webSocketURL(c.ex.URL), HTTP: c.ex.HTTP, Started: c.ex.Started.Add(answered),
			Server: c.ex.Server, Source: c.ex.Source,
		},
		outcome: c.outcome,
	}
	c.ex.URL = handshakeURL(c.ex.URL)
	if s.chunks = c.wholeMessages(s.ex.Started); len(s.chunks) > 0 {
		s.duration = s.chunks[len(s.chunks)-1].T
	}

	// An error message describes how the connection ended.
	for _, m := range c.e.Messages {
		if m.Type == messageError {
			s.outcome, s.ex.Error = captures.Reset, transfer.Clip(m.Data)
		}
	}
	s.duration = max(s.duration, c.duration-answered)
	c.duration = answered
	return s
}

// wholeMessages returns one chunk for each WebSocket message. started is the start of the WebSocket.
func (c *conversion) wholeMessages(started time.Time) []captures.Chunk {
	var chunks []captures.Chunk
	for i, m := range c.e.Messages {
		chunk := captures.Chunk{Data: c.messageData(i), T: c.messageTime(started, m)}
		switch m.Type {
		case messageSent:
		case messageReceived:
			chunk.Dir = captures.Down
		case messageError:
			continue
		default:
			c.problem(fmt.Sprintf("_webSocketMessages[%d].type", i), "the type %q is unknown, so the message is left out", transfer.Clip(m.Type))
			continue
		}

		// An invalid opcode is replaced, so that the data is not lost.
		op := captures.Opcode(min(max(m.Opcode, 0), 255))
		if number(op) != m.Opcode || !op.Known() {
			c.problem(fmt.Sprintf("_webSocketMessages[%d].opcode", i), "the opcode %v is invalid; binary is used instead", float64(m.Opcode))
			op = captures.OpBinary
		}
		chunk.Opcode = op | captures.OpFinal

		// Times must not decrease.
		if n := len(chunks); n > 0 {
			chunk.T = max(chunk.T, chunks[n-1].T)
		}
		chunks = append(chunks, chunk)
	}
	return chunks
}

// messageTime returns the time of a message since started.
func (c *conversion) messageTime(started time.Time, m message) time.Duration {
	const year2262 = 9.2e9
	at := time.UnixMicro(int64(min(max(m.Time, 0), year2262) * 1e6))
	return max(0, at.Sub(started))
}

// messageData returns the decoded data of the entry's WebSocket message with index i.
func (c *conversion) messageData(i int) []byte {
	m := c.e.Messages[i]
	if m.UnwireEncoding == "" && captures.Opcode(min(max(m.Opcode, 0), 255)) != captures.OpBinary {
		return []byte(m.Data)
	}
	return c.body(fmt.Sprintf("_webSocketMessages[%d]", i), m.Data, "base64")
}
