package replay

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/conversation"
	"unwire/replay/edit"
	"unwire/replay/live"
)

// Changes say what is to be other than in the capture. The zero value sends the
// captured request to where it was captured.
type Changes struct {
	// To is the scheme, host and port to send to; what its path has is put before
	// the captured one. Nil is where it was captured.
	To *url.URL

	// Part sends one exchange alone of a conversation in pieces.
	Part bool

	// Edits are carried out in their order.
	Edits []edit.Edit

	// Editor, if set, has someone edit a message as text, after Edits.
	Editor func(name string, text []byte) ([]byte, error)

	// EditFrame is the frame that Editor is given: see edit.Edit.Frame.
	EditFrame int

	// Codec is CodecJSON or CodecProto, to have the request sent in; "" is as captured.
	Codec string

	// Message, if set, is sent in place of each message with Codec.
	Message []byte

	// Headers make values of headers, by name in lower case; nil for a name sends the header
	// as captured. Others are made if the profile of the request's service knows how to.
	Headers map[string]HeaderMaker

	// Issued has what the server issued in calls that were sent before this one; it
	// may be nil.
	Issued *live.IDs

	Timing
}

// Timing is how long each part of an exchange may take.
type Timing struct {
	// Timeout is for all of it; the default is 60 s, and deadlines in headers stay
	// as captured.
	Timeout time.Duration

	// Wait is for the server's frame that a frame up answers; the default is 10 s.
	Wait time.Duration

	// Quiet is how long a server that sends other frames than captured has to be
	// silent to have had its turn; the default is 300 ms.
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

// A Request is a captured exchange with the changes that it is to be sent with:
// data, which nothing was concluded from and which can still be edited. Plan
// resolves it.
type Request struct {
	Changes

	id       int64
	captured *decode.Exchange
	body     []byte // as it was on the wire

	// conversation is what the exchange is a piece of, with the exchanges that carry
	// the pieces, by their number; nil for an exchange by itself.
	conversation *conversation.Conversation
	pieces       map[int64]*decode.Exchange
}

// NewRequest reads exchange id of src, or the conversation in pieces that goes by
// it, to be sent again with changes.
//
// Errors: of reading the exchange.
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

// Edit adds edits, which are carried out after those before them.
func (r *Request) Edit(edits ...edit.Edit) {
	r.Edits = append(slices.Clip(r.Edits), edits...)
}

// unedited is the request without its edits.
func (r *Request) unedited() *Request {
	plain := *r
	plain.Edits, plain.Editor = nil, nil
	return &plain
}

// ErrTransport is wrapped where an exchange has no request that could be sent alone.
var ErrTransport = errors.New("cannot be sent again")

// CheckTransport refuses what is no request with an answer: a connection without HTTP, a
// WebSocket, and the handshake that opened one, after which nobody would speak.
//
// Errors: ErrTransport, with the exchange and what it is.
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

// read reads the exchange, or the conversation in pieces that goes by it, and
// the body of the request.
func (r *Request) read(ctx context.Context, src captures.Source) error {
	ex, err := src.Exchange(ctx, r.id)
	if err == nil {
		err = CheckTransport(ex)
	}
	if err != nil {
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

// readPieces reads the exchanges that carried a conversation.
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

// upBody reads the request's body as it was on the wire.
func upBody(ctx context.Context, src captures.Source, id int64) ([]byte, error) {
	var body []byte
	for c, err := range src.Chunks(ctx, id, 0) {
		if err != nil {
			return nil, err
		}
		if c.Dir == captures.Up {
			body = append(body, c.Data...)
		}
	}
	return body, nil
}
