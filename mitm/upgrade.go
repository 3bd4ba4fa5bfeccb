package mitm

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"

	"unwire/captures"
)

// upgrade serves a connection that changed its protocol, such as a WebSocket:
// the bytes of both directions are passed on and recorded as they are.
func (p *Proxy) upgrade(w http.ResponseWriter, x *exchange, res *http.Response) {
	server, ok := res.Body.(io.ReadWriteCloser)
	if !ok {
		x.endBroken(errors.New("the server changed the protocol, but not the connection"))
		panic(http.ErrAbortHandler)
	}
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		x.endBroken(err)
		panic(http.ErrAbortHandler)
	}
	defer p.track(client)()
	defer client.Close()
	defer context.AfterFunc(p.ctx, func() { _ = client.Close() })()
	head := &http.Response{
		StatusCode: res.StatusCode, ProtoMajor: 1, ProtoMinor: 1,
		Header: forwardHeader(res.Header),
	}
	if err := errors.Join(head.Write(buffered), buffered.Flush()); err != nil {
		x.end(captures.Canceled, err)
		return
	}
	var upErr error
	done := make(chan struct{})
	go func() {
		defer close(done)
		upErr = x.copyRecorded(captures.Up, server, buffered.Reader)
		if h, ok := server.(interface{ CloseWrite() error }); ok && upErr == nil {
			_ = h.CloseWrite()
		} else {
			_ = server.Close()
		}
	}()
	downErr := x.copyRecorded(captures.Down, client, server)
	if h, ok := client.(halfCloser); ok && downErr == nil {
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
