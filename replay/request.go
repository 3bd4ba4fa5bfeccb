package replay

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/conversation"
	"unwire/replay/connection"
	"unwire/replay/edit"
	"unwire/replay/live"
)

// Changes describe how the request differs from the captured one. The zero value sends the captured
// request to its original server.
type Changes struct {
	// To is the scheme, host and port to send to. Its path, if any, is put before the captured one.
	// Nil means the captured server.
	To *url.URL

	// Part sends the chosen exchange alone, although it is one call of a split stream, i.e. of a stream
	// that the client sent as several HTTP calls. By default, the whole stream is sent.
	Part bool

	// Edits are the edits to the request's messages, applied in order.
	Edits []edit.Edit

	// Editor, if not nil, is called after Edits so that the user can edit a message as text. name is a
	// file name for it, such as "up-0.json"; the function returns the edited text.
	Editor func(name string, text []byte) ([]byte, error)

	// EditFrame is the number of the client's frame that Editor edits, from 0, or edit.FirstFrame for the first one.
	EditFrame int

	// Codec transcodes the request to CodecJSON or CodecProto; "" keeps the captured codec.
	Codec string

	// Message, if set, replaces each of the client's messages when transcoding. It is in the new codec.
	Message []byte

	// Answers are links between client and server values that the user specified, in addition to those
	// found automatically.
	Answers []live.Answer

	// Split is the method that divides the bytes of a raw connection into messages. The default, "",
	// makes one message of all bytes that one side sends before the other responds.
	Split decode.Splitting

	// Headers maps lower-case header names to functions that compute their values; nil sends the header
	// as captured. Other headers are computed if the service's profile defines how.
	Headers map[string]HeaderMaker

	// Issued are the ids that the live server issued in calls that were sent before; it may be nil.
	// They replace the captured ids.
	Issued *live.IDs

	// Timing has the timeouts of the replay.
	Timing
}

// Timing limits the duration of each phase of an exchange.
type Timing struct {
	// Timeout limits the whole exchange; the default is 60 seconds. If another value is set, deadlines
	// in headers are changed to it.
	Timeout time.Duration

	// Wait is how long a frame waits for the server's frame to which it responds. Default: 10 seconds.
	Wait time.Duration

	// Quiet applies if the server sends other frames than in the capture: the next frame is sent once
	// the server has been silent for this long. The default is 300 ms.
	Quiet time.Duration
}

// The defaults of Timing.
const (
	defaultTimeout = 60 * time.Second
	defaultWait    = 10 * time.Second
	defaultQuiet   = 300 * time.Millisecond
)

// defaults sets the fields that are zero to their defaults.
func (t *Timing) defaults() {
	if t.Timeout <= 0 {
		t.Timeout = defaultTimeout
	}
	if t.Wait <= 0 {
		t.Wait = defaultWait
	}
	if t.Quiet <= 0 {
		t.Quiet = defaultQuiet
	}
}

// A Request is a captured exchange with changes. It is only data and can still be edited; Plan
// resolves it.
type Request struct {
	// Changes are the requested changes.
	Changes

	// id is the number of the captured exchange.
	id int64

	// captured is the decoded exchange, or the joined exchange of a split stream.
	captured *decode.Exchange
	// body is the captured body of the request.
	body []byte

	// conversation is the split stream to which the exchange belongs; nil if it belongs to none. A
	// split stream is one that the client sent as several HTTP calls.
	conversation *conversation.Conversation

	// pieces are the exchanges of the split stream, by number.
	pieces map[int64]*decode.Exchange

	// ending is how the captured client ended a WebSocket or raw connection.
	ending ending
}

// NewRequest reads exchange id of src in order to send it again with changes. If the exchange is one
// call of a split stream, i.e. of a stream that was sent as several HTTP calls, it reads the whole
// stream.
//
// Errors: errors of reading the exchange.
func NewRequest(ctx context.Context, src captures.Source, id int64, changes Changes) (*Request, error) {
	r := &Request{Changes: changes, id: id}
	if err := r.read(ctx, src); err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	if r.conversation != nil {
		if err := r.readPieces(ctx, src); err != nil {
			return nil, fmt.Errorf("replay: exchange %d: %w", id, err)
		}
	}
	return r, nil
}

// Edit appends edits to the request's changes.
func (r *Request) Edit(edits ...edit.Edit) {
	r.Edits = append(slices.Clip(r.Edits), edits...)
}

// unedited returns a copy of the request without its edits.
func (r *Request) unedited() *Request {
	plain := *r
	plain.Edits, plain.Editor = nil, nil
	return &plain
}

// ErrTransport reports an exchange that cannot be sent again, such as a handshake whose WebSocket the
// capture does not contain.
var ErrTransport = errors.New("cannot be sent again")

// checkTransport refuses exchanges that replay cannot send: those of an unknown transport, and the
// handshake of a WebSocket that the capture does not contain.
//
// Errors: ErrTransport, with the exchange and its transport.
func checkTransport(ex *captures.Exchange) error {
	switch {
	case ex.Transport != captures.HTTP:
		return fmt.Errorf("exchange %d %w: its transport %s is unknown", ex.ID, ErrTransport, ex.Transport)
	case ex.ChangedProtocol() == string(captures.WebSocket):
		return fmt.Errorf("exchange %d %w: it is the handshake of a WebSocket, and the capture does not contain the WebSocket's messages", ex.ID, ErrTransport)
	}
	return nil
}

// read reads the exchange, or the split stream to which it belongs, and the request body.
func (r *Request) read(ctx context.Context, src captures.Source) error {
	ex, err := src.Exchange(ctx, r.id)
	if err != nil {
		return err
	}
	switch {
	case ex.Transport == captures.WebSocket, ex.Transport == captures.RawTCP, ex.Transport == captures.RawTLS,
		ex.Transport == captures.HTTP && ex.ChangedProtocol() == string(captures.WebSocket):
		return r.readConnection(ctx, src, ex)
	}
	if err := checkTransport(ex); err != nil {
		return err
	}
	if !r.Part {
		c, err := conversation.Decode(ctx, src, r.id, decode.Options{})
		if err != nil {
			return err
		}
		if c != nil {
			r.captured, r.conversation = c.Exchange, c
			return nil
		}
	}
	if r.captured, err = decode.Decode(ctx, src, r.id, decode.Options{}); err != nil {
		return err
	}
	r.body, err = upBody(ctx, src, r.id)
	return err
}

// readPieces reads all exchanges of a split stream.
func (r *Request) readPieces(ctx context.Context, src captures.Source) error {
	c := r.conversation
	r.pieces = map[int64]*decode.Exchange{}
	ids := append([]int64{c.ID}, c.Heads...)
	for i := range c.Frames {
		if c.Frames[i].Dir == captures.Up {
			ids = append(ids, c.Origins[i].Exchange)
		}
	}
	for _, id := range ids {
		if r.pieces[id] != nil {
			continue
		}
		ex, err := decode.Decode(ctx, src, id, decode.Options{})
		if err != nil {
			return err
		}
		r.pieces[id] = ex
	}
	return nil
}

// upBody returns the bytes that the captured client sent in exchange id, without control frames of a
// WebSocket.
func upBody(ctx context.Context, src captures.Source, id int64) ([]byte, error) {
	var body []byte
	for c, err := range src.Chunks(ctx, id, 0) {
		if err != nil {
			return nil, err
		}
		if c.Dir == captures.Up && c.Opcode.Kind() < captures.OpClose {
			body = append(body, c.Data...)
		}
	}
	return body, nil
}

// readConnection reads a captured WebSocket or raw connection into r, in the form of an HTTP exchange:
// the client's messages are the request, and the server's the response. The headers are those of the
// WebSocket handshake.
func (r *Request) readConnection(ctx context.Context, src captures.Source, ex *captures.Exchange) error {
	shake := ex
	if ex.Transport == captures.HTTP { // the handshake: its WebSocket is meant

		// A capture stores the handshake and the WebSocket as two related exchanges.
		id, err := related(ctx, src, ex.ID, func(rel captures.Relation) (int64, bool) { return rel.Exchange, rel.Target == ex.ID })
		if err != nil || id == 0 {
			return errors.Join(err, checkTransport(ex))
		}
		r.id = id
	}
	var err error
	if r.captured, err = decode.Decode(ctx, src, r.id, decode.Options{Split: r.Split}); err != nil {
		return err
	}
	if r.body, err = upBody(ctx, src, r.id); err != nil {
		return err
	}

	c := *r.captured
	r.captured = &c
	if c.Transport != captures.WebSocket {
		if c.URL = requestURL(c.URL); connection.IsRaw(&c) {
			r.captured = connection.Turns(&c)
		}
		r.ending.clientFirst = true
		return nil
	}

	// Conversely, the headers of a WebSocket are in its handshake's exchange.
	if shake == ex && ex.Transport == captures.WebSocket {
		id, err := related(ctx, src, ex.ID, func(rel captures.Relation) (int64, bool) { return rel.Target, rel.Exchange == ex.ID })
		if err != nil {
			return err
		}
		if id != 0 {
			if shake, err = src.Exchange(ctx, id); err != nil {
				return err
			}
		}
	}
	c.URL, c.Method, c.HTTP = requestURL(c.URL), http.MethodGet, "1.1"
	c.Status = http.StatusSwitchingProtocols
	c.RequestHeaders, c.ResponseHeaders = shake.RequestHeaders, handshakeHeaders(shake.ResponseHeaders)
	r.ending.code, r.ending.clientFirst = closeOf(&c)
	c.Frames = withoutControl(c.Frames)
	return nil
}

// related returns the number of the exchange that a handshake relation connects with exchange id: that
// of a WebSocket, or of its handshake. It is 0 if there is none. other returns the number if the
// relation fits.
func related(ctx context.Context, src captures.Source, id int64, other func(captures.Relation) (int64, bool)) (int64, error) {
	s, ok := src.(interface {
		Relations(ctx context.Context, id int64) ([]captures.Relation, error)
	})
	if !ok {
		return 0, nil
	}
	list, err := s.Relations(ctx, id)
	if err != nil {
		return 0, err
	}
	for _, rel := range list {
		if at, ok := other(rel); ok && rel.Kind == captures.HandshakeOf && rel.Capture == "" {
			return at, nil
		}
	}
	return 0, nil
}

// schemes maps URL schemes of connections, such as ws, to those of requests to the same server.
var schemes = [...][2]string{{"ws", "http"}, {"wss", "https"}, {"tcp", "http"}, {"tls", "https"}}

// requestURL returns the URL of a connection with the scheme http or https instead of ws, wss, tcp or
// tls.
func requestURL(u string) string {
	scheme, rest, _ := strings.Cut(u, "://")
	for _, s := range schemes {
		if strings.EqualFold(s[0], scheme) {
			return s[1] + "://" + rest
		}
	}
	return u
}

// handshakeHeaders returns the headers of a handshake's response without those that concern only the
// handshake.
func handshakeHeaders(h captures.Headers) captures.Headers {
	return slices.DeleteFunc(slices.Clone(h), func(h captures.Header) bool {
		name := strings.ToLower(h.Name)
		return name == "connection" || name == "upgrade" || name == "sec-websocket-accept" || name == "date"
	})
}

// closeOf returns the code of the client's WebSocket close frame; first means that the client closed
// before the server did.
func closeOf(ex *decode.Exchange) (code int, first bool) {
	seen := false
	for i := range ex.Frames {
		f := &ex.Frames[i]
		if f.Close == nil {
			continue
		}
		if f.Dir == captures.Up {
			return f.Close.Code, !seen
		}
		seen = true
	}
	return 0, !seen
}

// withoutControl returns the frames without the control frames of WebSockets: pings, pongs and close
// frames.
func withoutControl(frames []decode.Frame) []decode.Frame {
	return slices.DeleteFunc(slices.Clone(frames), func(f decode.Frame) bool { return f.Opcode.Kind() >= captures.OpClose })
}

// An ending describes how the captured client ended a WebSocket or raw connection.
type ending struct {
	// code is the status code of the client's close frame; 0 for none.
	code int

	// clientFirst means that the client closed the connection before the server did.
	clientFirst bool
}
