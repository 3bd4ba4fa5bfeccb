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

	// Part sends a single exchange of a conversation in pieces.
	Part bool

	// Edits are the edits to the request's messages, applied in order.
	Edits []edit.Edit

	// Editor, if not nil, is called after Edits so that the user can edit a message as text.
	Editor func(name string, text []byte) ([]byte, error)

	// EditFrame is the number of the frame for Editor; see edit.Edit.Frame.
	EditFrame int

	// Codec transcodes the request to CodecJSON or CodecProto; "" keeps the captured codec.
	Codec string

	// Message, if set, replaces each message when transcoding.
	Message []byte

	// Answers are mappings of identifiers that the user specified.
	Answers []live.Answer

	// Split names how the bytes of a connection without HTTP and WebSocket divide into
	// messages; "" is turn by turn.
	Split decode.Splitting

	// Headers maps lower-case header names to functions that compute their values; nil sends the header
	// as captured. Other headers are computed if the service's profile defines how.
	Headers map[string]HeaderMaker

	// Issued are the ids that the server issued in calls that were sent before; it may be nil.
	Issued *live.IDs

	Timing
}

// Timing limits the duration of each phase of an exchange.
type Timing struct {
	// Timeout is for the whole exchange; the default is 60 seconds, and deadlines in headers stay
	// as captured.
	Timeout time.Duration

	// Wait is how long a frame waits for the server's frame to which it responds. Default: 10 seconds.
	Wait time.Duration

	// Quiet is how long a server must be silent, if it sends other frames than captured, until the
	// next frame is sent; the default is 300 ms.
	Quiet time.Duration
}

const (
	defaultTimeout = 60 * time.Second
	defaultWait    = 10 * time.Second
	defaultQuiet   = 300 * time.Millisecond
)

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
	Changes

	id       int64
	captured *decode.Exchange
	// body is the captured body of the request.
	body []byte

	// conversation is the split stream to which the exchange belongs, with all its exchanges; nil if
	// the exchange belongs to none.
	conversation *conversation.Conversation
	pieces       map[int64]*decode.Exchange

	ending ending // of a connection without HTTP
}

// NewRequest reads the exchange id of src (or the whole split stream to which it belongs) in order to
// send it again with changes.
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

// ErrTransport is wrapped if an exchange has no request that can be sent on its own.
var ErrTransport = errors.New("cannot be sent again")

// CheckTransport refuses exchanges that are not a request with an answer: a connection without
// HTTP, a WebSocket, and its handshake, after which nobody would send messages.
//
// Errors: ErrTransport, with the exchange and its transport.
func CheckTransport(ex *captures.Exchange) error {
	what := ""
	switch {
	case ex.Transport == captures.WebSocket:
		what = "is a WebSocket: its messages are not a request with an answer"
	case ex.Transport != captures.HTTP:
		what = "is a connection without HTTP (" + string(ex.Transport) + "): its bytes are not a request with an answer"
	case ex.ChangedProtocol() == string(captures.WebSocket):
		what = "is the handshake of a WebSocket: alone it would open one in which nothing is said"
	default:
		return nil
	}
	return fmt.Errorf("exchange %d %w, as it %s", ex.ID, ErrTransport, what)
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
	if err := CheckTransport(ex); err != nil {
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

// upBody reads the captured body of a request.
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

// readConnection reads a captured WebSocket or raw connection as if its frames were the body of a
// request and of its response. The headers are those of the WebSocket handshake.
func (r *Request) readConnection(ctx context.Context, src captures.Source, ex *captures.Exchange) error {
	shake := ex
	if ex.Transport == captures.HTTP { // the handshake: its WebSocket is meant

		// A capture stores the handshake and the WebSocket as two related exchanges.
		id, err := related(ctx, src, ex.ID, func(rel captures.Relation) (int64, bool) { return rel.Exchange, rel.Target == ex.ID })
		if err != nil || id == 0 {
			return errors.Join(err, CheckTransport(ex))
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

// related returns the ID of the exchange that is related to id, such as the handshake of a WebSocket; 0
// if there is none. other selects the relation.
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

// requestURL is the URL of a connection with the scheme of a request.
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

// withoutControl leaves out pings, pongs and close frames.
func withoutControl(frames []decode.Frame) []decode.Frame {
	return slices.DeleteFunc(slices.Clone(frames), func(f decode.Frame) bool { return f.Opcode.Kind() >= captures.OpClose })
}

// An ending is how the captured client ended a connection.
type ending struct {
	code        int // of the close frame; 0 for none
	clientFirst bool
}
