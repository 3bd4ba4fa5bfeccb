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
)

const (
	// bufferSize is how much is read and recorded at once, in bytes.
	bufferSize = 64 << 10

	// quiet is how long a connection that is to end has to be silent.
	quiet = 250 * time.Millisecond

	// lastWords is how long a server that accepts nothing more may go on sending.
	lastWords = time.Second
)

// A Recorder takes what passes; a captures.Recording is one.
type Recorder interface {
	Chunk(dir captures.Direction, p []byte)
	End(o captures.Outcome, errText string)
}

// A Config says what Relay connects, and what it records to.
type Config struct {
	Client, Server net.Conn

	// Draining, if set, ends when connections are to end: the relay goes on while something
	// passes, and cuts the connection off, as when its own context ends, after a while of
	// silence.
	Draining context.Context

	// Begin is called when the first bytes pass. It returns nil if they are not recorded.
	Begin func() Recorder
}

var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// Relay passes on what either side sends until both have ended, and closes both. The end
// of one direction half-closes the other side, without TLS's close_notify if there was
// none; an error on one side resets the other. When ctx ends both are reset, and recorded
// as incomplete, by the cause of ctx.
func Relay(ctx context.Context, c Config) {
	r := &relay{Config: c}
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
	if r.rec != nil {
		r.rec.End(r.outcome, r.errText)
	}
}

type relay struct {
	Config

	// passed counts what passes.
	passed atomic.Int64

	// clientEnded says that the client has ended what it sends, clientTruncated that this
	// was TLS without close_notify.
	clientEnded, clientTruncated atomic.Bool

	mu      sync.Mutex
	begun   bool
	rec     Recorder
	outcome captures.Outcome
	errText string
}

// cut cuts the connection off.
func (r *relay) cut(cause error) {
	r.finish(captures.Incomplete, cause)
	Reset(r.Client)
	Reset(r.Server)
}

// cutWhenQuiet cuts the connection off after a while of silence, unless it ends before.
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

// record records bytes that pass.
func (r *relay) record(dir captures.Direction, p []byte) {
	r.passed.Add(1)
	r.mu.Lock()
	if !r.begun {
		r.begun, r.rec = true, r.Begin()
	}
	rec := r.rec
	r.mu.Unlock()
	if rec != nil {
		rec.Chunk(dir, p)
	}
}

// finish notes how the connection ended; the first call counts.
func (r *relay) finish(o captures.Outcome, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.outcome == captures.InFlight {
		if r.outcome = o; err != nil {
			r.errText = err.Error()
		}
	}
}

func (r *relay) copyUp(down <-chan struct{}) {
	readErr, writeErr := r.copy(captures.Up, r.Server, r.Client)
	switch {
	case readErr != nil:
		r.finish(captures.Canceled, readErr)
		Reset(r.Server)
	case writeErr != nil:
		// What the server has sent before it broke reaches the client still.
		_ = r.Server.SetReadDeadline(time.Now().Add(lastWords))
		<-down
		r.finish(captures.Reset, writeErr)
		Reset(r.Client)
	}
}

func (r *relay) copyDown() {
	readErr, writeErr := r.copy(captures.Down, r.Client, r.Server)
	switch {
	case readErr != nil && r.clientTruncated.Load() && isTruncationAlert(readErr):
		closeWrite(lowest(r.Client))
	// The deadline is that of lastWords, whose reason is noted elsewhere.
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

// copy passes one direction on until it ends.
func (r *relay) copy(dir captures.Direction, dst, src net.Conn) (readErr, writeErr error) {
	buf := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buf)
	for {
		n, err := src.Read(buf[:])
		if n > 0 {
			r.record(dir, buf[:n])
			if _, werr := dst.Write(buf[:n]); werr != nil {
				return nil, werr
			}
		}
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

func closeWrite(c net.Conn) {
	if h, ok := c.(interface{ CloseWrite() error }); ok {
		_ = h.CloseWrite()
	}
}
