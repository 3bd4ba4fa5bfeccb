package mitm

import (
	"context"
	"errors"
	"io"
	"net"

	"unwire/captures"
	"unwire/mitm/rewrite"
)

// upgrade relays bytes between two connections that have switched to another protocol, for instance to
// WebSocket, and records them unchanged. The client has received the response already. x is the exchange that
// is being recorded.
func (p *Proxy) upgrade(client, server net.Conn, x *exchange) {
	defer p.track(client)()

	// Closing both connections unblocks the two copies when the recording stops.
	defer context.AfterFunc(p.ctx, func() {
		_ = client.Close()
		_ = server.Close()
	})()
	var upErr error
	done := make(chan struct{})
	copyDirection := x.copyRecorded
	if change := p.beginUpgraded(x); change != nil {
		defer change.End()
		copyDirection = func(d captures.Direction, dst io.Writer, src io.Reader) error {
			return x.copyChanged(change, d, dst, src)
		}
	}
	go func() {
		// Half-close where possible: the other direction may still have data.
		defer close(done)
		upErr = copyDirection(captures.Up, server, client)
		if h, ok := server.(interface{ CloseWrite() error }); ok && upErr == nil {
			_ = h.CloseWrite()
		} else {
			_ = server.Close()
		}
	}()
	downErr := copyDirection(captures.Down, client, server)
	if h, ok := client.(interface{ CloseWrite() error }); ok && downErr == nil {
		_ = h.CloseWrite()
	} else {
		_ = client.Close()
	}

	// The outcome depends on which side failed.
	<-done
	var stop *rewrite.Stop
	switch {
	case errors.As(upErr, &stop) || errors.As(downErr, &stop):
		x.end(captures.Reset, stop)
	case p.ctx.Err() != nil:
		x.end(captures.Incomplete, errRecordingStopped)
	case upErr != nil && !errors.Is(upErr, net.ErrClosed):
		x.end(captures.Canceled, upErr)
	case downErr != nil && !errors.Is(downErr, net.ErrClosed):
		x.end(captures.Reset, downErr)
	default:
		x.end(captures.Complete, nil)
	}
}

// beginUpgraded returns the rewriting rules for the bytes after a switch of the protocol, or nil.
func (p *Proxy) beginUpgraded(x *exchange) rewrite.Exchange {
	if p.opts.Rewrite == nil || x.upgraded == nil {
		return nil
	}
	change := p.opts.Rewrite.Begin(x.upgraded, rewrite.RequestOf(x.upgraded))
	if change != nil && x.rec != nil {
		change.Recorded(x.rec.ID())
	}
	return change
}

// copyChanged copies and records the bytes of direction d until src ends. Rewriting rules may change the bytes that
// are written to dst.
func (x *exchange) copyChanged(change rewrite.Exchange, d captures.Direction, dst io.Writer, src io.Reader) error {
	body := rewrite.Body{Dir: d, Exchange: change, Declared: -1}
	if x.rec != nil {
		body.Recorder = x.rec
	}
	return body.Run(x.ctx, recordedReader{src, x, d}, plainSink{dst})
}

// A recordedReader is a reader that records the bytes read from it.
type recordedReader struct {
	// Reader is the wrapped reader.
	io.Reader
	// x is the exchange whose bytes are recorded.
	x *exchange
	// dir is the direction of the bytes.
	dir captures.Direction
}

// Read reads and records bytes.
func (r recordedReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if n > 0 {
		r.x.recordChunk(r.dir, p[:n])
	}
	return n, err
}

// A plainSink forwards changed bytes without an HTTP head.
type plainSink struct {
	// Writer receives the bytes.
	io.Writer
}

// Begin does nothing.
func (plainSink) Begin(int64) error { return nil }

// copyRecorded copies and records the bytes of direction d until src ends.
func (x *exchange) copyRecorded(d captures.Direction, dst io.Writer, src io.Reader) error {
	buf := make([]byte, chunkSize)
	for {
		n, err := src.Read(buf)
		if n > 0 {
			x.recordChunk(d, buf[:n])
			if _, werr := dst.Write(buf[:n]); werr != nil {
				return werr
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
