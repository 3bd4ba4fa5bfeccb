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
	// serverLinger is how long a server may continue to send after it stopped accepting data.
	serverLinger = time.Second
	// clientLinger is how long a client may take to read the last response and to close. Closing first could
	// reset the connection before the client has read everything.
	clientLinger = 100 * time.Millisecond
)

// A Relay forwards HTTP/2 frames between a client and its server, including SETTINGS, PING, PRIORITY, windows
// and reset codes, so that flow control stays between the two. Header blocks are forwarded unchanged and decoded
// for the recording.
//
// Only in three cases are frames changed, and header blocks encoded again: for a reverse proxy, requests are
// rewritten to address the origin; during shutdown, new streams are refused; and rules change bodies (Config.Rewrites).
//
// Requests go to the server of the connection, whatever their :authority is, as they would without the proxy:
// that server answers 421 for other hosts.
type Relay struct {
	// config has the two connections and the functions that record and change exchanges.
	config Config
	// client is the side of the client.
	client *side
	// server is the side of the server.
	server *side

	// tables are the largest HPACK table sizes, in bytes, that the receiver of each direction allows in its SETTINGS;
	// 0 before.
	tables [2]atomic.Uint32

	// mu guards the fields up to cut.
	mu sync.Mutex
	// streams are the open streams by number; nil after the connection has ended.
	streams map[uint32]*stream

	// newestStream is the last stream that the client has opened.
	newestStream uint32

	// draining means that unwire has sent the client a GOAWAY, and that the connection is closed after the
	// last open one.
	draining bool

	// ended means that the connection was closed and all exchanges were ended.
	ended bool

	// goAway is the error that the server reported in GOAWAY, or the error of writing to the server; nil before.
	goAway error

	// cut are the numbers of the last streams, up to maxCut, that a rule has ended: frames that still arrive for them
	// are dropped.
	cut map[uint32]struct{}
	// cutOrder are the numbers in cut, the oldest at cutNext if it has maxCut of them.
	cutOrder []uint32
	cutNext  int

	// hasCut means that a rule has ended a stream, so that cut may contain streams.
	hasCut atomic.Bool

	// pumps are the forwarders of the two directions, by direction: captures.Up reads from the client, captures.Down
	// from the server.
	pumps [2]*pump

	// waiting is the number of bytes in all inboxes: received body bytes that the rules have not processed yet.
	waiting atomic.Int64
}

// Run forwards frames until the connection has ended. head is the result of ReadPreface. When ctx ends, running
// exchanges are recorded as incomplete with the cause of ctx.
func (r *Relay) Run(ctx context.Context, head []byte) {
	defer context.AfterFunc(ctx, func() { r.endAll(captures.Incomplete, context.Cause(ctx)) })()
	up := newPump(r, captures.Up, r.client, r.server)
	down := newPump(r, captures.Down, r.server, r.client)
	r.pumps = [2]*pump{up, down}
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

// endBroken ends the connection after one side has failed. If the server no longer accepts data, a GOAWAY with
// the reason may still have to be read.
func (r *Relay) endBroken(p *pump, side *side, err error) {
	var bad *protocolError
	if errors.As(err, &bad) {
		r.config.Logger.Warn("the connection is ended", "err", err)
		side.inject(goAwayFrame(0, bad.code, bad.text))
	}
	switch {
	case side == r.client && bad == nil:
		r.endAll(captures.Canceled, errors.New("the client closed the connection"))
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

// noteGoAway stores the error code of a GOAWAY frame if it came from the server and is not NO_ERROR.
func (r *Relay) noteGoAway(d captures.Direction, code errorCode) {
	if d == captures.Down && code != 0 {
		r.mu.Lock()
		r.goAway = &serverAbort{"the server closed the connection", code}
		r.mu.Unlock()
	}
}

// serverFailure returns the error with which to end exchanges after the server's connection failed with err: the
// reason in the server's GOAWAY if there was one.
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

// endAll closes both connections and ends all running exchanges with an outcome and an error.
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
	if r.config.Rewrites {
		r.client.sender.close()
		r.server.sender.close()
	}
	for _, s := range left {
		s.endRecording(o, err)
	}
	_ = r.client.conn.Close()
	_ = r.server.conn.Close()
	for range left {
		r.config.Release()
	}
}

// releaseExchanges calls Config.Release for n exchanges that have ended. If the connection is draining and no stream
// is left, it is closed shortly after.
func (r *Relay) releaseExchanges(n int) {
	for range n {
		r.config.Release()
	}
	if n > 0 && r.isDrained() {
		time.AfterFunc(clientLinger, func() { r.endAll(captures.Complete, nil) })
	}
}

// isDrained reports whether the connection is draining and has no streams.
func (r *Relay) isDrained() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.draining && len(r.streams) == 0
}

// Drain sends a GOAWAY frame to the client, so that it opens no more streams, and closes the connection
// after the last one.
func (r *Relay) Drain() {
	r.mu.Lock()
	r.draining = true
	r.mu.Unlock()
	r.client.inject(goAwayFrame(maxStreamID, 0, ""))
	if r.isDrained() {
		r.endAll(captures.Complete, nil)
	}
}

// goAwayFrame returns an encoded GOAWAY frame with the last stream number, an error code and a debug text.
func goAwayFrame(last uint32, code errorCode, text string) []byte {
	payload := binary.BigEndian.AppendUint32(nil, last)
	payload = binary.BigEndian.AppendUint32(payload, uint32(code))
	return appendFrame(nil, frameGoAway, 0, 0, append(payload, text...))
}
