package h2

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"unwire/captures"
)

const (
	// lastWords is how long a server that takes nothing more may go on talking.
	lastWords = time.Second
	// lastAnswer is how long a client has to read the last answer and to close:
	// closing first, with something of it unread here, would reset it.
	lastAnswer = 100 * time.Millisecond
)

// A Relay passes HTTP/2 on between one connection of a client and one to its
// server, frame by frame: what one says is what the other hears, SETTINGS, PING,
// PRIORITY, windows and reset codes too, so that flow control is theirs. Header
// blocks pass as they are, HPACK's state being theirs as well, and are decoded
// on the side, for the record.
//
// It changes something in two cases only. In front of an origin, requests are
// addressed to that. When recording stops, streams that begin are refused. In
// both the client's header blocks are encoded anew.
//
// A request goes to the server that its connection is to, whatever its
// :authority says, as it would without the proxy: that server answers 421 if
// it is not for it.
type Relay struct {
	config         Config
	client, server *h2End

	// tables has by direction how large HPACK's table may be.
	tables [2]atomic.Uint32

	mu      sync.Mutex
	streams map[uint32]*h2Stream
	newest  uint32 // of the client's streams
	leaving bool   // it ends when the last stream has
	over    bool
	away    error // the server's GOAWAY
}

// Run pumps until the connection has ended; head is what was read of it. The end
// of ctx ends it, by its cause.
func (r *Relay) Run(ctx context.Context, head []byte) {
	defer context.AfterFunc(ctx, func() { r.end(captures.Incomplete, context.Cause(ctx)) })()
	up := newPump(r, captures.Up, r.client, r.server)
	down := newPump(r, captures.Down, r.server, r.client)
	up.have = copy(up.buf, head)
	if r.config.Origin != nil {
		up.rewrite()
	}
	up.pass(head[:len(clientPreface)])
	up.parsed = len(clientPreface)
	both := make(chan struct{})
	go func() {
		defer close(both)
		side, err := down.run()
		r.broke(down, side, err)
	}()
	side, err := up.run()
	r.broke(up, side, err)
	<-both
}

// broke ends the connection whose one side broke. A server that takes nothing
// more may have said why not, which the other pump is still to hear.
func (r *Relay) broke(p *pump, side *h2End, err error) {
	var bad *h2Error
	if errors.As(err, &bad) {
		r.config.Logger.Warn("the connection is ended", "err", err)
		side.inject(goAwayFrame(0, bad.code, bad.text))
	}
	switch {
	case side == r.client && bad == nil:
		r.end(captures.Canceled, errors.New("the client went away"))
	case side == r.client:
		r.end(captures.Canceled, err)
	case p.dst == side && bad == nil:
		r.mu.Lock()
		if r.away == nil {
			r.away = err
		}
		r.mu.Unlock()
		_ = r.server.conn.SetReadDeadline(time.Now().Add(lastWords))
	default:
		r.end(captures.Reset, r.serverError(err))
	}
}

// goneAway notes what one side says before it ends the connection.
func (r *Relay) goneAway(d captures.Direction, code h2Code) {
	if d == captures.Down && code != 0 {
		r.mu.Lock()
		r.away = &serverCode{"the server closed the connection", code}
		r.mu.Unlock()
	}
}

func (r *Relay) serverError(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.away != nil && !errors.As(err, new(*h2Error)):
		return r.away
	case errors.Is(err, io.EOF):
		return errors.New("the server closed the connection")
	}
	return err
}

// end ends the connection, and with it what still goes on.
func (r *Relay) end(o captures.Outcome, err error) {
	r.mu.Lock()
	if r.over {
		r.mu.Unlock()
		return
	}
	r.over = true
	left := r.streams
	r.streams = nil
	r.mu.Unlock()
	for _, s := range left {
		s.end(o, err)
	}
	_ = r.client.conn.Close()
	_ = r.server.conn.Close()
	for range left {
		r.config.Leave()
	}
}

// settled lets exchanges go whose last bytes were written, and ends a
// connection that only waited for them.
func (r *Relay) settled(n int) {
	for range n {
		r.config.Leave()
	}
	if n > 0 && r.idle() {
		time.AfterFunc(lastAnswer, func() { r.end(captures.Complete, nil) })
	}
}

// idle reports whether the connection ended but for its being closed.
func (r *Relay) idle() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.leaving && len(r.streams) == 0
}

// Drain asks the client to begin no more, and ends when what it has begun has.
func (r *Relay) Drain() {
	r.mu.Lock()
	r.leaving = true
	r.mu.Unlock()
	r.client.inject(goAwayFrame(maxStreamID, 0, ""))
	if r.idle() {
		r.end(captures.Complete, nil)
	}
}

func goAwayFrame(last uint32, code h2Code, text string) []byte {
	payload := binary.BigEndian.AppendUint32(nil, last)
	payload = binary.BigEndian.AppendUint32(payload, uint32(code))
	return appendFrame(nil, frameGoAway, 0, 0, append(payload, text...))
}
