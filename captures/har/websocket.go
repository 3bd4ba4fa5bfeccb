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

// resourceWebSocket is what Chrome calls a WebSocket.
const resourceWebSocket = "websocket"

// The types of messages, in Chrome's words.
const (
	messageSent     = "send"
	messageReceived = "receive"
	messageError    = "error"
)

// A message is one of a WebSocket, as Chrome writes it: a text as it is, and what is
// binary in base64.
type message struct {
	Type   string `json:"type"`
	Time   number `json:"time"` // in seconds since 1970
	Opcode number `json:"opcode"`
	Data   string `json:"data"`

	// EncodingX is "base64" if the data is in base64 though the opcode does not say so: in
	// control frames, and in texts that are not UTF-8.
	EncodingX string `json:"_encoding,omitempty"`
}

// messagesOf puts the chunks of a WebSocket together. For each chunk, a mark says how many
// bytes of which message it has.
func messagesOf(started time.Time, chunks []captures.Chunk) ([]message, []mark) {
	type whole struct {
		message
		data []byte
	}
	var all []whole
	marks := make([]mark, 0, len(chunks))
	open := [2]int{-1, -1} // the message that goes on, by direction
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
		if op < captures.OpClose {
			if open[c.Dir] = i; final {
				open[c.Dir] = -1
			}
		}
		marks = append(marks, mark{
			Dir: c.Dir.String(), TNS: int64(c.T), Len: len(c.Data),
			Message: i, Opcode: uint8(op), Final: final, Compressed: c.Opcode&captures.OpCompressed != 0,
		})
	}

	messages := make([]message, len(all))
	for i, m := range all {
		messages[i] = m.message
		if op := captures.Opcode(m.Opcode); op == captures.OpText && utf8.Valid(m.data) {
			messages[i].Data = string(m.data)
		} else {
			messages[i].Data = base64.StdEncoding.EncodeToString(m.data)
			if op != captures.OpBinary {
				messages[i].EncodingX = "base64"
			}
		}
	}
	return messages, marks
}

// A sockets finds the WebSockets that handshakes opened.
type sockets struct {
	src       transfer.Source
	relations transfer.Relations
	opened    map[int64][]int64 // by handshake
}

func loadSockets(ctx context.Context, src transfer.Source) (*sockets, error) {
	relations, err := transfer.LoadRelations(ctx, src)
	if err != nil {
		return nil, err
	}
	s := &sockets{src, relations, make(map[int64][]int64)}
	for id := range relations {
		if handshake := relations.Handshake(id); handshake != 0 {
			s.opened[handshake] = append(s.opened[handshake], id)
		}
	}
	return s, nil
}

// of returns the WebSocket that an exchange opened, or nil: the first one, if there are
// several. Other bytes of the connection may be related to it as well.
func (s *sockets) of(ctx context.Context, handshake int64) (first *captures.Exchange, err error) {
	for _, id := range s.opened[handshake] {
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

// hasEntry reports whether a WebSocket is in the entry of its handshake.
func (s *sockets) hasEntry(ctx context.Context, id int64) (bool, error) {
	handshake, err := s.src.Exchange(ctx, s.relations.Handshake(id))
	switch {
	case errors.Is(err, captures.ErrNoExchange):
		return false, nil
	case err != nil:
		return false, err
	case handshake.Transport != captures.HTTP:
		return false, nil
	}
	first, err := s.of(ctx, handshake.ID)
	return err == nil && first != nil && first.ID == id, err
}

// putSocket writes a WebSocket into an entry: that of its handshake, or one of its own.
func (o *Options) putSocket(ctx context.Context, s *sockets, e *entry, ex *captures.Exchange) (*extension, error) {
	h, err := loadExchange(ctx, s.src, ex, o.MaxBody)
	if err != nil {
		return nil, err
	}
	x := headOf(ex, s.relations)
	x.Transport, x.Method, x.URL, x.Status, x.Protocol = ex.Transport, ex.Method, ex.URL, ex.Status, resourceWebSocket
	x.RequestHeaders, x.ResponseHeaders = fieldsOf(ex.RequestHeaders), fieldsOf(ex.ResponseHeaders)
	x.Omitted = h.large
	e.ResourceType = resourceWebSocket
	if e.Messages = []message{}; !h.large {
		e.Messages, x.Chunks = messagesOf(ex.Started, h.chunks)
	}
	return x, nil
}

// webSocketURL is the URL of a WebSocket's handshake as browsers show it.
func webSocketURL(u string) string {
	if rest, ok := strings.CutPrefix(u, "http"); ok {
		return "ws" + rest
	}
	return u
}

// handshakeURL reverses webSocketURL.
func handshakeURL(u string) string {
	if rest, ok := strings.CutPrefix(u, "ws"); ok {
		return "http" + rest
	}
	return u
}

// A converted is an exchange as it will be recorded, with its number and relations in
// the file.
type converted struct {
	ex        captures.Exchange
	chunks    []captures.Chunk
	duration  time.Duration
	outcome   captures.Outcome
	number    int64
	relations []transfer.Relation
}

// ownSocket makes the exchange of a WebSocket that Export wrote.
func (c *conversion) ownSocket(member string, x *extension) *converted {
	s := &converted{ex: captures.Exchange{Transport: captures.WebSocket}}
	c.head(member, x, s)
	s.ex.Method, s.ex.URL, s.ex.Status = x.Method, x.URL, min(max(x.Status, 0), 999)
	s.ex.RequestHeaders, _ = c.headers(x.RequestHeaders)
	s.ex.ResponseHeaders, _ = c.headers(x.ResponseHeaders)
	if s.ex.URL == "" {
		s.ex.URL = webSocketURL(c.e.Request.URL)
	}
	if x.Omitted {
		c.problem(member+".omitted", "the messages were too large for the file")
		return s
	}
	chunks, err := c.cutMessages(x.Chunks)
	if err != nil {
		c.problem(member+".chunks", "%v: each message is one chunk", err)
		chunks = c.wholeMessages(s.ex.Started)
	}
	s.chunks = chunks
	return s
}

// cutMessages divides the messages into chunks.
func (c *conversion) cutMessages(marks []mark) ([]captures.Chunk, error) {
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
			return nil, fmt.Errorf("[%d]: dir is neither up nor down", i)
		case m.Message < 0 || m.Message >= len(rest):
			return nil, fmt.Errorf("[%d]: there is no message %d", i, m.Message)
		case m.Len < 0 || m.Len > len(rest[m.Message]) || m.TNS < 0:
			return nil, fmt.Errorf("[%d]: length %d, %d bytes left", i, m.Len, len(rest[m.Message]))
		case !op.Known():
			return nil, fmt.Errorf("[%d]: opcode %d is none", i, m.Opcode)
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
	for i, b := range rest {
		if len(b) > 0 {
			return nil, fmt.Errorf("%d bytes of message %d are in none", len(b), i)
		}
	}
	return chunks, nil
}

// foreignSocket makes the exchange of a WebSocket that another tool wrote, with its
// handshake's: that ends with the answer. It returns nil if the server did not accept.
func (c *conversion) foreignSocket() *converted {
	accepted := c.ex.Status == 101 || c.ex.Status/100 == 2 && c.ex.Method == "CONNECT"
	if c.e.Messages == nil || !accepted && len(c.e.Messages) == 0 {
		return nil
	}
	answered := c.sent() + fromMillis(c.e.Timings.Wait)
	if len(c.e.Messages) > 0 {
		answered = min(answered, c.messageTime(c.ex.Started, c.e.Messages[0]))
	}
	if answered > c.duration {
		answered = 0
	}
	s := &converted{
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
	for _, m := range c.e.Messages {
		if m.Type == messageError {
			s.outcome, s.ex.Error = captures.Reset, transfer.Clip(m.Data)
		}
	}
	s.duration = max(s.duration, c.duration-answered)
	c.duration = answered
	return s
}

// wholeMessages makes a chunk of each message.
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
			c.problem(fmt.Sprintf("_webSocketMessages[%d].type", i), "%q is not known: the message is left out", transfer.Clip(m.Type))
			continue
		}
		op := captures.Opcode(min(max(m.Opcode, 0), 255))
		if number(op) != m.Opcode || !op.Known() {
			c.problem(fmt.Sprintf("_webSocketMessages[%d].opcode", i), "%v is none: binary is taken", float64(m.Opcode))
			op = captures.OpBinary
		}
		chunk.Opcode = op | captures.OpFinal
		if n := len(chunks); n > 0 {
			chunk.T = max(chunk.T, chunks[n-1].T)
		}
		chunks = append(chunks, chunk)
	}
	return chunks
}

// messageTime is the time of a message since started.
func (c *conversion) messageTime(started time.Time, m message) time.Duration {
	const year2262 = 9.2e9
	at := time.UnixMicro(int64(min(max(m.Time, 0), year2262) * 1e6))
	return max(0, at.Sub(started))
}

// messageData is what is in a message.
func (c *conversion) messageData(i int) []byte {
	m := c.e.Messages[i]
	if m.EncodingX == "" && captures.Opcode(min(max(m.Opcode, 0), 255)) != captures.OpBinary {
		return []byte(m.Data)
	}
	return c.body(fmt.Sprintf("_webSocketMessages[%d]", i), m.Data, "base64")
}
