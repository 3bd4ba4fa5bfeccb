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
	// serverLinger is how long a server that accepts nothing more may go on sending.
	serverLinger = time.Second
	// clientLinger is how long a client has to read the last answer and to close:
	// closing first, with something of the client's unread, would reset it.
	clientLinger = 100 * time.Millisecond
)

// A Relay forwards HTTP/2 between one connection of a client and one to its
// server, frame by frame: what one sends is what the other receives, SETTINGS, PING,
// PRIORITY, windows and reset codes too, so that flow control is theirs. Header
// blocks are forwarded as they are, HPACK's state being theirs as well, and are
// decoded in addition, for the record.
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
	client, server *side

	// tables are the allowed sizes of HPACK's table, by direction.
	tables [2]atomic.Uint32

	mu      sync.Mutex
	streams map[uint32]*stream

	// newestStream is the last one that the client opened.
	newestStream uint32

	// draining says that the connection ends when the last stream has.
	draining bool

	ended bool

	// goAway is why the server ends the connection, from its GOAWAY.
	goAway error
}

// Run forwards until the connection has ended. head is what ReadPreface returned.
// When ctx ends, what still runs is recorded as incomplete, by the cause of ctx.
func (r *Relay) Run(ctx context.Context, head []byte) {
	defer context.AfterFunc(ctx, func() { r.endAll(captures.Incomplete, context.Cause(ctx)) })()
	up := newPump(r, captures.Up, r.client, r.server)
	down := newPump(r, captures.Down, r.server, r.client)
	up.filled = copy(up.buf, head)
	if r.config.Origin != nil {
		up.startReencoding()
	}
	up.forward(head[:len(clientPreface)])
	up.parsed = len(clientPreface)
	both := make(chan struct{})
	go func() {
		defer close(both)
		side, err := down.run()
		r.endBroken(down, side, err)
	}()
	side, err := up.run()
	r.endBroken(up, side, err)
	<-both
}

// endBroken ends the connection after one side broke. A server that accepts nothing
// more may have sent a GOAWAY with the reason, which the other pump is still to read.
func (r *Relay) endBroken(p *pump, side *side, err error) {
	var bad *protocolError
	if errors.As(err, &bad) {
		r.config.Logger.Warn("the connection is ended", "err", err)
		side.inject(goAwayFrame(0, bad.code, bad.text))
	}
	switch {
	case side == r.client && bad == nil:
		r.endAll(captures.Canceled, errors.New("the client went away"))
	case side == r.client:
		r.endAll(captures.Canceled, err)
	case p.dst == side && bad == nil:
		r.mu.Lock()
		if r.goAway == nil {
			r.goAway = err
		}
		r.mu.Unlock()
		_ = r.server.conn.SetReadDeadline(time.Now().Add(serverLinger))
	default:
		r.endAll(captures.Reset, r.serverFailure(err))
	}
}

// noteGoAway notes the error code of a server's GOAWAY.
func (r *Relay) noteGoAway(d captures.Direction, code errorCode) {
	if d == captures.Down && code != 0 {
		r.mu.Lock()
		r.goAway = &serverAbort{"the server closed the connection", code}
		r.mu.Unlock()
	}
}

func (r *Relay) serverFailure(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.goAway != nil && !errors.As(err, new(*protocolError)):
		return r.goAway
	case errors.Is(err, io.EOF):
		return errors.New("the server closed the connection")
	}
	return err
}

// endAll ends the connection, and the exchanges that still run on it.
func (r *Relay) endAll(o captures.Outcome, err error) {
	r.mu.Lock()
	if r.ended {
		r.mu.Unlock()
		return
	}
	r.ended = true
	left := r.streams
	r.streams = nil
	r.mu.Unlock()
	for _, s := range left {
		s.endRecording(o, err)
	}
	_ = r.client.conn.Close()
	_ = r.server.conn.Close()
	for range left {
		r.config.Release()
	}
}

// releaseExchanges takes n exchanges back whose last bytes were written, and ends a
// connection that only waited for them.
func (r *Relay) releaseExchanges(n int) {
	for range n {
		r.config.Release()
	}
	if n > 0 && r.isDrained() {
		time.AfterFunc(clientLinger, func() { r.endAll(captures.Complete, nil) })
	}
}

// isDrained reports whether the connection is draining and no stream is left.
func (r *Relay) isDrained() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.draining && len(r.streams) == 0
}

// Drain asks the client by GOAWAY to open no more streams, and ends the connection
// when the last one has ended.
func (r *Relay) Drain() {
	r.mu.Lock()
	r.draining = true
	r.mu.Unlock()
	r.client.inject(goAwayFrame(maxStreamID, 0, ""))
	if r.isDrained() {
		r.endAll(captures.Complete, nil)
	}
}

func goAwayFrame(last uint32, code errorCode, text string) []byte {
	payload := binary.BigEndian.AppendUint32(nil, last)
	payload = binary.BigEndian.AppendUint32(payload, uint32(code))
	return appendFrame(nil, frameGoAway, 0, 0, append(payload, text...))
}
