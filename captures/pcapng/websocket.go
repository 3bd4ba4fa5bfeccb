package pcapng

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/gobwas/ws"
	"github.com/klauspost/compress/flate"

	"unwire/captures"
	"unwire/captures/transfer"
)

// A joinedSource is a view of a capture in which each WebSocket is part of the exchange of its HTTP handshake,
// as on the wire. Its messages become WebSocket frames.
type joinedSource struct {
	// The embedded Source is the capture itself; the methods that differ in this view override its methods.
	transfer.Source
	// byHandshake maps the ID of a handshake exchange to its WebSocket exchange.
	byHandshake map[int64]*captures.Exchange
	// merged are the IDs of the WebSockets that are a part of another exchange.
	merged map[int64]bool
}

// joinWebSockets reads from a capture which WebSocket belongs to which handshake, and returns the joined view.
func joinWebSockets(ctx context.Context, src transfer.Source) (*joinedSource, error) {
	relations, err := transfer.LoadRelations(ctx, src)
	if err != nil {
		return nil, err
	}
	j := &joinedSource{src, make(map[int64]*captures.Exchange), make(map[int64]bool)}
	for id := range relations {
		handshake := relations.Handshake(id)
		if handshake == 0 {
			continue
		}

		// Of several candidates, the first one is the WebSocket.
		opened, err := src.Exchange(ctx, id)
		if err == nil && opened.Transport == captures.WebSocket {
			var by *captures.Exchange
			if by, err = src.Exchange(ctx, handshake); err == nil && accepts(by) && (j.byHandshake[handshake] == nil || j.byHandshake[handshake].ID > id) {
				j.byHandshake[handshake] = opened
			}
		}
		if err != nil && !errors.Is(err, captures.ErrNoExchange) {
			return nil, err
		}
	}
	for _, opened := range j.byHandshake {
		j.merged[opened.ID] = true
	}
	return j, nil
}

// accepts reports whether an exchange is a handshake that the server accepted.
func accepts(ex *captures.Exchange) bool {
	return ex.Transport == captures.HTTP && ex.Outcome != captures.Failed &&
		(ex.Status == http.StatusSwitchingProtocols || isExtendedConnect(ex) && ex.Status/100 == 2)
}

// isExtendedConnect reports whether a request is an extended CONNECT, which opens a tunnel inside HTTP/2 (RFC
// 8441).
func isExtendedConnect(ex *captures.Exchange) bool {
	return ex.Method == http.MethodConnect && ex.RequestHeaders.Get(":protocol") != "" && isHTTP2(ex)
}

// Exchange returns an exchange. One that opened a WebSocket has the outcome and the duration of the WebSocket.
func (j *joinedSource) Exchange(ctx context.Context, id int64) (*captures.Exchange, error) {
	ex, err := j.Source.Exchange(ctx, id)
	if err != nil {
		return nil, err
	}
	return j.join(ex), nil
}

// join returns ex with the outcome and the end of the WebSocket that it opened; ex itself if it opened none.
func (j *joinedSource) join(ex *captures.Exchange) *captures.Exchange {
	opened := j.byHandshake[ex.ID]
	if opened == nil {
		return ex
	}
	whole := *ex
	whole.Outcome, whole.Error = opened.Outcome, opened.Error
	whole.Duration = max(ex.Duration, opened.Started.Add(opened.Duration).Sub(ex.Started))
	return &whole
}

// Exchanges yields all exchanges, without the WebSockets that are part of another exchange.
func (j *joinedSource) Exchanges(ctx context.Context) iter.Seq2[*captures.Exchange, error] {
	return func(yield func(*captures.Exchange, error) bool) {
		for ex, err := range j.Source.Exchanges(ctx) {
			if err == nil {
				if j.merged[ex.ID] {
					continue
				}
				ex = j.join(ex)
			}
			if !yield(ex, err) {
				return
			}
		}
	}
}

// Chunks yields the chunks of an exchange, and then the WebSocket frames of the WebSocket that it opened. An
// empty chunk in between marks the time of the handshake's response.
func (j *joinedSource) Chunks(ctx context.Context, id, fromSeq int64) iter.Seq2[captures.Chunk, error] {
	opened := j.byHandshake[id]
	if opened == nil {
		return j.Source.Chunks(ctx, id, fromSeq)
	}
	return func(yield func(captures.Chunk, error) bool) {
		ex, err := j.Source.Exchange(ctx, id)
		if err != nil {
			yield(captures.Chunk{}, err)
			return
		}
		for c, err := range j.Source.Chunks(ctx, id, fromSeq) {
			if !yield(c, err) || err != nil {
				return
			}
		}

		// Times of the WebSocket are relative to its own start.
		began := max(0, opened.Started.Sub(ex.Started))
		if !yield(captures.Chunk{Exchange: id, Dir: captures.Down, T: began}, nil) {
			return
		}
		f := frameWriter{deflates: deflates(ex.ResponseHeaders)}
		for c, err := range j.Source.Chunks(ctx, opened.ID, 0) {
			if err == nil {
				c, err = f.frame(c, began)
			}
			if !yield(c, err) || err != nil {
				return
			}
		}
	}
}

// deflates reports whether response headers agree to permessage-deflate (RFC 7692).
func deflates(answer captures.Headers) bool {
	for _, h := range answer {
		if strings.EqualFold(h.Name, "sec-websocket-extensions") && strings.Contains(h.Value, "permessage-deflate") {
			return true
		}
	}
	return false
}

// deflateTail is the end of flushed DEFLATE data. permessage-deflate omits it at the end of a message (RFC
// 7692, section 7.2.1).
var deflateTail = []byte{0, 0, 0xff, 0xff}

// A frameWriter converts the recorded chunks of a WebSocket to WebSocket frames.
type frameWriter struct {
	// deflates means that permessage-deflate was agreed.
	deflates bool
	// compressed is true for each direction whose current message is compressed.
	compressed [2]bool
	// open is true for each direction whose current message is not complete yet.
	open [2]bool

	// frames counts the client's frames, to make their masks differ.
	frames uint32
}

// frame returns the WebSocket frame for a chunk, with its time moved by began, when the WebSocket began. Frames
// of the client are masked.
//
// Shape: each part of a message is compressed independently, so it is readable whatever context takeover was
// agreed.
func (f *frameWriter) frame(c captures.Chunk, began time.Duration) (captures.Chunk, error) {
	op := c.Opcode.Kind()
	final := c.Opcode&captures.OpFinal != 0
	h := ws.Header{Fin: final, OpCode: ws.OpCode(op)}
	data := bytes.Clone(c.Data)
	if op < captures.OpClose {
		if op == captures.OpContinuation && !f.open[c.Dir] {
			// The beginning of the message was not recorded.
			h.OpCode = ws.OpBinary
		}
		if h.OpCode != ws.OpContinuation {
			f.compressed[c.Dir] = f.deflates && c.Opcode&captures.OpCompressed != 0
			h.Rsv = ws.Rsv(f.compressed[c.Dir], false, false)
		}
		if f.open[c.Dir] = !final; f.compressed[c.Dir] {
			var err error
			if data, err = deflate(data, final); err != nil {
				return c, fmt.Errorf("pcapng: %w", err)
			}
		}
	} else {
		h.Fin = true
	}

	// Masks are required, but their value does not matter.
	h.Length = int64(len(data))
	if c.Dir == captures.Up {
		f.frames++
		h.Masked, h.Mask = true, [4]byte{0x55, byte(f.frames >> 16), byte(f.frames >> 8), byte(f.frames)}
		ws.Cipher(data, h.Mask, 0)
	}
	var b bytes.Buffer
	if err := ws.WriteHeader(&b, h); err != nil {
		return c, fmt.Errorf("pcapng: %w", err)
	}
	b.Write(data)
	return captures.Chunk{Exchange: c.Exchange, Dir: c.Dir, Seq: c.Seq, T: began + c.T, Data: b.Bytes()}, nil
}

// deflate compresses a fragment of a WebSocket message (permessage-deflate). last means that it ends the
// message.
func deflate(p []byte, last bool) ([]byte, error) {
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.BestSpeed)
	if err == nil {
		_, err = w.Write(p)
	}
	if err = cmp.Or(err, w.Flush()); err != nil {
		return nil, err
	}
	if last {
		return bytes.TrimSuffix(b.Bytes(), deflateTail), nil
	}
	return b.Bytes(), nil
}

// A rawWriter is the protocolWriter for a connection that does not carry HTTP.
type rawWriter struct {
	// link writes the packets of the connection.
	link *link
}

// request writes nothing.
func (r *rawWriter) request(*exchangeWriter) error { return nil }

// response writes nothing.
func (r *rawWriter) response(*exchangeWriter) error { return nil }

// data writes the bytes unchanged.
func (r *rawWriter) data(_ *exchangeWriter, dir captures.Direction, p []byte, _ bool) error {
	_, err := r.link.ends[dir].Write(p)
	return err
}

// end ends a direction of the connection.
func (r *rawWriter) end(_ *exchangeWriter, dir captures.Direction) error { return r.link.close(dir) }

// abort resets the connection from the side by.
func (r *rawWriter) abort(_ *exchangeWriter, by captures.Direction) error { return r.link.reset(by) }
