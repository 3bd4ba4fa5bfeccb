package raw

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"unwire/captures"
	"unwire/mitm/rewrite"
)

const (
	// bufferSize is the size of the buffers for relayed bytes.
	bufferSize = 64 << 10

	// quiet is how long a connection must be silent before it is cut off during a shutdown.
	quiet = 250 * time.Millisecond

	// lastWords is how long a server may continue sending after it stopped accepting data.
	lastWords = time.Second
)

// A Recorder records the relayed bytes of a connection; a captures.Recording is one.
type Recorder interface {
	// Chunk records relayed bytes of one direction.
	Chunk(dir captures.Direction, p []byte)
	// End records how the connection ended.
	End(o captures.Outcome, errText string)
}

// A Config describes the connections that Relay connects.
type Config struct {
	// Client and Server are the connections between which bytes are relayed.
	Client, Server net.Conn

	// Draining ends when connections should end: Relay then waits until the connection is silent, and cuts it
	// off.
	Draining context.Context

	// Change, if not nil, returns the rewriting rules for the connection, which change bytes before they are
	// forwarded; nil for none. The received bytes are recorded in any case.
	Change func(rec Recorder) rewrite.Exchange

	// Begin starts the recording. It is called before the first bytes are relayed, and returns nil if they are
	// not recorded.
	Begin func() Recorder
}

// buffers are reusable buffers of bufferSize bytes.
var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// Relay forwards bytes between two connections in both directions until both directions have ended, and closes
// the connections. The end of one direction is forwarded as a half-close, without TLS close_notify if there was
// none. An error on one side resets the other. When ctx ends, both connections are reset, and the exchange is
// recorded as incomplete with the cause of ctx.
func Relay(ctx context.Context, c Config) {
	r := &relay{Config: c, ctx: ctx}
	defer context.AfterFunc(ctx, func() { r.cut(context.Cause(ctx)) })()
	if c.Draining != nil {
		ended := make(chan struct{})
		defer close(ended)
		defer context.AfterFunc(c.Draining, func() { r.cutWhenQuiet(ended) })()
	}
	down := make(chan struct{})
	go func() {
		defer close(down)
		r.copyDown()
	}()
	r.copyUp(down)
	<-down
	_ = c.Client.Close()
	_ = c.Server.Close()
	r.finish(captures.Complete, nil)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.change != nil {
		r.change.End()
	}
	if r.rec != nil {
		r.rec.End(r.outcome, r.errText)
	}
}

// A relay is the state of one call of Relay.
type relay struct {
	// Config has the connections to relay and the functions that record them.
	Config
	// ctx ends when the relaying has to stop.
	ctx context.Context

	// passed counts the pieces of data that were relayed, to detect silence.
	passed atomic.Int64

	// clientEnded means that the client has ended its direction.
	clientEnded atomic.Bool
	// clientTruncated means that the client's TLS connection ended without close_notify, so that its data may be
	// truncated.
	clientTruncated atomic.Bool

	// mu guards the fields below.
	mu sync.Mutex

	// begun means that the recording was started.
	begun bool
	// change applies the rewriting rules; nil if there are none for the connection.
	change rewrite.Exchange
	// rec is the recording of the connection; nil if it is not recorded.
	rec Recorder
	// outcome is how the exchange ended; "" before.
	outcome captures.Outcome
	// errText is the error with which the exchange ended; "" for none.
	errText string
}

// cut resets both connections; cause is recorded.
func (r *relay) cut(cause error) {
	r.finish(captures.Incomplete, cause)
	Reset(r.Client)
	Reset(r.Server)
}

// cutWhenQuiet resets the connections once they are silent, unless ended is closed before.
func (r *relay) cutWhenQuiet(ended <-chan struct{}) {
	tick := time.NewTicker(quiet)
	defer tick.Stop()
	for before := r.passed.Load(); ; {
		select {
		case <-ended:
			return
		case <-tick.C:
		}
		now := r.passed.Load()
		if now == before {
			r.cut(context.Cause(r.Draining))
			return
		}
		before = now
	}
}

// record records relayed bytes of a direction. The first call starts the recording.
func (r *relay) record(dir captures.Direction, p []byte) {
	r.passed.Add(1)
	r.mu.Lock()
	if !r.begun {
		if r.begun, r.rec = true, r.Begin(); r.Change != nil {
			r.change = r.Change(r.rec)
		}
	}
	rec := r.rec
	r.mu.Unlock()
	if rec != nil {
		rec.Chunk(dir, p)
	}
}

// finish sets the outcome to be recorded, with err as its reason. Only the first call has an effect.
func (r *relay) finish(o captures.Outcome, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.outcome == captures.InFlight {
		if r.outcome = o; err != nil {
			r.errText = err.Error()
		}
	}
}

// copyUp forwards the client's bytes to the server, and handles errors. down is closed when copyDown has ended.
func (r *relay) copyUp(down <-chan struct{}) {
	readErr, writeErr := r.copy(captures.Up, r.Server, r.Client)
	switch {
	case readErr != nil:
		r.finish(captures.Canceled, readErr)
		Reset(r.Server)
	case writeErr != nil:
		// Let the client receive what the server has sent before.
		_ = r.Server.SetReadDeadline(time.Now().Add(lastWords))
		<-down
		r.finish(captures.Reset, writeErr)
		Reset(r.Client)
	}
}

// copyDown forwards the server's bytes to the client, and handles errors.
func (r *relay) copyDown() {
	readErr, writeErr := r.copy(captures.Down, r.Client, r.Server)
	switch {
	case readErr != nil && r.clientTruncated.Load() && isTruncationAlert(readErr):
		closeWrite(lowest(r.Client))
	// The deadline is that of lastWords; copyUp records the reason.
	case readErr != nil && !IsTimeout(readErr):
		r.finish(captures.Reset, readErr)
		Reset(r.Client)
	case writeErr != nil && r.clientEnded.Load():
		r.finish(captures.Canceled, errClientClosed)
		Reset(r.Server)
	case writeErr != nil:
		r.finish(captures.Canceled, writeErr)
		Reset(r.Server)
	}
}

// copy forwards the bytes of one direction from src to dst until it ends. It returns the error of either side.
func (r *relay) copy(dir captures.Direction, dst, src net.Conn) (readErr, writeErr error) {
	buf := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buf)
	var changed changer
	for {
		n, err := src.Read(buf[:])
		if n > 0 {
			// Record before writing, so that an answer is never recorded before its question.
			r.record(dir, buf[:n])
			if werr := changed.write(r, dir, dst, buf[:n]); werr != nil {
				return nil, werr
			}
		}

		// A truncated TLS stream must stay truncated on the other side.
		switch {
		case err == nil:
		case errors.Is(err, io.ErrUnexpectedEOF), err == io.EOF && isTruncated(src):
			if dir == captures.Up {
				r.clientTruncated.Store(true)
				r.clientEnded.Store(true)
			}
			closeWrite(lowest(dst)) // without TLS's close_notify
			return nil, nil
		case err == io.EOF:
			if dir == captures.Up {
				r.clientEnded.Store(true)
			}
			closeWrite(dst)
			return nil, nil
		default:
			return err, nil
		}
	}
}

// closeWrite half-closes a connection, if it supports that.
func closeWrite(c net.Conn) {
	if h, ok := c.(interface{ CloseWrite() error }); ok {
		_ = h.CloseWrite()
	}
}
