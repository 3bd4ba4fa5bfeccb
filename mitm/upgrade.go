package mitm

import (
	"context"
	"errors"
	"io"
	"net"

	"unwire/captures"
)

// upgrade serves connections that changed their protocol, such as a WebSocket: the
// bytes of both directions are passed on and recorded as they are. The client has the
// answer already.
func (p *Proxy) upgrade(client, server net.Conn, x *exchange) {
	defer p.track(client)()
	defer context.AfterFunc(p.ctx, func() {
		_ = client.Close()
		_ = server.Close()
	})()
	var upErr error
	done := make(chan struct{})
	go func() {
		defer close(done)
		upErr = x.copyRecorded(captures.Up, server, client)
		if h, ok := server.(interface{ CloseWrite() error }); ok && upErr == nil {
			_ = h.CloseWrite()
		} else {
			_ = server.Close()
		}
	}()
	downErr := x.copyRecorded(captures.Down, client, server)
	if h, ok := client.(interface{ CloseWrite() error }); ok && downErr == nil {
		_ = h.CloseWrite()
	} else {
		_ = client.Close()
	}
	<-done
	switch {
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

// copyRecorded copies and records until the source ends.
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
