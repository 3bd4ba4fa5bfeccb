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

// A joinedSource is a capture in which a WebSocket is what follows on its handshake, as
// on the wire: an exchange has the chunks of both, those of messages as frames.
type joinedSource struct {
	transfer.Source
	sockets map[int64]*captures.Exchange // by handshake
	merged  map[int64]bool               // WebSockets that are in another exchange
}

func joinSockets(ctx context.Context, src transfer.Source) (*joinedSource, error) {
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
		opened, err := src.Exchange(ctx, id)
		if err == nil && opened.Transport == captures.WebSocket {
			var by *captures.Exchange
			if by, err = src.Exchange(ctx, handshake); err == nil && accepts(by) && (j.sockets[handshake] == nil || j.sockets[handshake].ID > id) {
				j.sockets[handshake] = opened
			}
		}
		if err != nil && !errors.Is(err, captures.ErrNoExchange) {
			return nil, err
		}
	}
	for _, opened := range j.sockets {
		j.merged[opened.ID] = true
	}
	return j, nil
}

// accepts reports whether an exchange is a handshake that the server accepted.
func accepts(ex *captures.Exchange) bool {
	return ex.Transport == captures.HTTP && ex.Outcome != captures.Failed &&
		(ex.Status == http.StatusSwitchingProtocols || isExtendedConnect(ex) && ex.Status/100 == 2)
}

// isExtendedConnect reports whether a request opens a tunnel within HTTP/2 (RFC 8441).
func isExtendedConnect(ex *captures.Exchange) bool {
	return ex.Method == http.MethodConnect && ex.RequestHeaders.Get(":protocol") != "" && isHTTP2(ex)
}

// Exchange returns an exchange; one that opened a WebSocket ends with that.
func (j *joinedSource) Exchange(ctx context.Context, id int64) (*captures.Exchange, error) {
	ex, err := j.Source.Exchange(ctx, id)
	if err != nil {
		return nil, err
	}
	return j.join(ex), nil
}

func (j *joinedSource) join(ex *captures.Exchange) *captures.Exchange {
	opened := j.sockets[ex.ID]
	if opened == nil {
		return ex
	}
	whole := *ex
	whole.Outcome, whole.Error = opened.Outcome, opened.Error
	whole.Duration = max(ex.Duration, opened.Started.Add(opened.Duration).Sub(ex.Started))
	return &whole
}

// Exchanges yields the exchanges without the WebSockets that are in others.
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

// Chunks yields the chunks of an exchange, and the frames of what it opened: first an
// empty one when that began, which is when the answer came.
func (j *joinedSource) Chunks(ctx context.Context, id, fromSeq int64) iter.Seq2[captures.Chunk, error] {
	opened := j.sockets[id]
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

// deflates reports whether an answer agrees to permessage-deflate (RFC 7692).
func deflates(answer captures.Headers) bool {
	for _, h := range answer {
		if strings.EqualFold(h.Name, "sec-websocket-extensions") && strings.Contains(h.Value, "permessage-deflate") {
			return true
		}
	}
	return false
}

// deflateTail ends what is flushed, and is not sent at the end of a message.
var deflateTail = []byte{0, 0, 0xff, 0xff}

// A frameWriter makes frames of the chunks of a WebSocket.
type frameWriter struct {
	deflates   bool
	compressed [2]bool // the message that goes on, by direction
	open       [2]bool
	frames     uint32
}

// frame returns a chunk of a message as the frame that carries it. A client's is masked.
//
// Shape: each message is compressed on its own, so that it can be read whatever was agreed
// about the context of others.
func (f *frameWriter) frame(c captures.Chunk, began time.Duration) (captures.Chunk, error) {
	op := c.Opcode.Kind()
	final := c.Opcode&captures.OpFinal != 0
	h := ws.Header{Fin: final, OpCode: ws.OpCode(op)}
	data := bytes.Clone(c.Data)
	if op < captures.OpClose {
		if op == captures.OpContinuation && !f.open[c.Dir] {
			h.OpCode = ws.OpBinary // its beginning was not recorded
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

// deflate compresses a part of a message.
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

// A rawSpeaker speaks for both sides of a connection that has no HTTP in it.
type rawSpeaker struct{ link *link }

func (r *rawSpeaker) request(*exchangeWriter) error  { return nil }
func (r *rawSpeaker) response(*exchangeWriter) error { return nil }

func (r *rawSpeaker) data(_ *exchangeWriter, dir captures.Direction, p []byte, _ bool) error {
	_, err := r.link.ends[dir].Write(p)
	return err
}

func (r *rawSpeaker) end(_ *exchangeWriter, dir captures.Direction) error { return r.link.close(dir) }

func (r *rawSpeaker) cut(_ *exchangeWriter, by captures.Direction) error { return r.link.reset(by) }
