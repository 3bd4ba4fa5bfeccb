package transport

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"unwire/captures"
	"unwire/decode/envelope"
	"unwire/replay/outbound"
)

// maxAppends is the number of client messages that may be in flight at a time. Servers are reported to
// accept 16.
const maxAppends = 8

// A split is a Stream over HTTP/1.1: the response to one HTTP call is the server's half, and each
// message of the client is an HTTP call of its own (an append).
type split struct {
	// dialer makes the calls of the stream.
	dialer *Dialer

	// header are the headers of each call.
	header http.Header

	// id is the id that all calls of the stream have in common.
	id string

	// ctx ends when the stream is closed.
	ctx context.Context //nolint:containedctx

	// cancel ends ctx, and thereby all calls.
	cancel context.CancelFunc

	// down is the server's half.
	down *download

	// record records the call for the server's half; nil if nothing is recorded.
	record captures.Recording

	// slots is a semaphore that limits the number of concurrent append calls to maxAppends.
	slots chan struct{}

	// appends waits for the append calls in flight.
	appends sync.WaitGroup

	// seq is the number of the next append, from 0.
	seq uint64

	// mu guards failed.
	mu sync.Mutex
	// failed is the error of the first append that failed.
	failed error
}

// openSSE opens a stream over HTTP/1.1: it requests the server's half and, at the same time, sends the
// first message as an append, because a server may wait for either. ctx limits only the opening.
func (d *Dialer) openSSE(ctx context.Context, header http.Header, first []byte) (Stream, error) {
	live, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s := &split{dialer: d, header: header, id: header.Get("X-Request-Id"), ctx: live, cancel: cancel, slots: make(chan struct{}, maxAppends)}
	if s.id == "" {
		s.id = rand.Text()
	}

	// Cancelling ctx aborts only the opening; afterwards the stream has its own context.
	stop := context.AfterFunc(ctx, cancel)
	if err := s.Send(first); err != nil {
		cancel()
		return nil, err
	}
	err := s.open()
	if !stop() && err == nil {
		err = ctx.Err()
		s.down.body.Close()
	}

	// An append that failed explains the failure better than the cancellation that it caused.
	if err != nil {
		cancel()
		s.appends.Wait()
		endRecord(s.record, captures.Failed, err)
		if failed := s.failure(); failed != nil && ctx.Err() == nil && errors.Is(err, context.Canceled) {
			err = failed
		}
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, err
	}
	return s, nil
}

// open requests the server's half of the stream. It returns once the response headers have arrived.
func (s *split) open() error {
	d := s.dialer
	var path []uint64
	for _, h := range d.Profile.Split.Heads {
		// the call whose response has the server's messages
		if h.Data == 0 {
			path = h.ID
		}
	}

	// The body names the stream by its id, at the place that the profile describes.
	body := envelope.Append(nil, 0, nest(path, []byte(s.id)))
	req, err := http.NewRequestWithContext(s.ctx, http.MethodPost, d.endpoint(d.procedures.sse).String(), bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header = s.header.Clone()
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("Accept", "text/event-stream")
	if s.record, err = d.begin(req, "1.1"); err != nil {
		return err
	}
	if s.record != nil {
		s.record.Chunk(captures.Up, body)
	}
	var progress outbound.Progress
	var server string
	resp, err := d.http1.RoundTrip(req.WithContext(progress.Trace(s.ctx, &server)))
	if err != nil {
		return openError(s.ctx, &progress, err)
	}
	recordResponse(s.record, resp, server)
	if resp.StatusCode != http.StatusOK {
		return statusError(resp, s.record)
	}
	s.down = newDownload(resp, s.record)
	return nil
}

// nest returns a protobuf message that has data at a path of field numbers, in nested messages.
func nest(path []uint64, data []byte) []byte {
	for i := len(path) - 1; i >= 0; i-- {
		out := protowire.AppendTag(nil, protowire.Number(path[i]), protowire.BytesType)
		data = protowire.AppendBytes(out, data)
	}
	return data
}

// Send sends a message in an append call, without waiting for its response. It blocks only while too
// many calls are in flight. An error of an earlier append is returned.
func (s *split) Send(message []byte) error {
	if err := s.failure(); err != nil {
		return err
	}
	select {
	case s.slots <- struct{}{}:
	case <-s.ctx.Done():
		return ErrClosed
	}
	a := s.dialer.Profile.Split.Append
	body := nest([]uint64{a.Text}, []byte(hex.EncodeToString(message)))
	body = append(body, nest(a.ID, []byte(s.id))...)
	// protobuf omits zero
	if s.seq > 0 {
		body = protowire.AppendTag(body, protowire.Number(a.Seq), protowire.VarintType)
		body = protowire.AppendVarint(body, s.seq)
	}
	s.seq++
	s.appends.Go(func() {
		defer func() { <-s.slots }()
		if err := s.add(body); err != nil {
			s.fail(err)
		}
	})
	return nil
}

// add sends one append call; body is the protobuf message that wraps the client's message.
func (s *split) add(body []byte) error {
	d := s.dialer
	req, err := http.NewRequestWithContext(s.ctx, http.MethodPost, d.endpoint(d.procedures.add).String(), bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header = s.header.Clone()
	req.Header.Set("Content-Type", "application/proto")

	// This call is unary, so the header of a stream does not apply.
	req.Header.Del("Connect-Accept-Encoding")

	// The stream may have outlived the token of its opening.
	if d.Authorization != nil {
		field, err := d.Authorization(s.ctx)
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", field)
	}
	record, err := d.begin(req, "1.1")
	if err != nil {
		return err
	}
	if record != nil {
		record.Chunk(captures.Up, body)
	}
	if _, err = d.ask(s.ctx, req, record); err != nil {
		err = fmt.Errorf("the server did not accept a message of the client: %w", err)
	}

	// The record ends with the reason: a canceled call is no failure of the server.
	switch {
	case err == nil:
		endRecord(record, captures.Complete, nil)
	case s.ctx.Err() != nil:
		endRecord(record, captures.Canceled, ErrClosed)
	default:
		endRecord(record, captures.Failed, err)
	}
	return err
}

// fail ends the stream with the error of an append call. Only the first error is kept.
func (s *split) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil && s.ctx.Err() == nil {
		s.failed = err
		s.cancel()
	}
}

// failure returns the error of the first append call that failed; nil if none did.
func (s *split) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// Receive returns the next message of the server's half.
func (s *split) Receive() ([]byte, error) {
	message, err := s.down.next()
	if err != nil && !errors.Is(err, io.EOF) && !errors.As(err, new(*EndError)) {
		if failed := s.failure(); failed != nil {
			err = failed
		}
	}
	return message, err
}

// Interrupt cancels all calls once the pending appends are sent, but at the latest after closeGrace.
func (s *split) Interrupt() {
	timer := time.NewTimer(closeGrace)
	go func() {
		defer timer.Stop()
		defer s.cancel()
		for range maxAppends {
			select {
			case s.slots <- struct{}{}:
			case <-timer.C:
				return
			case <-s.ctx.Done():
				return
			}
		}
	}()
}

// Close releases the resources of the stream.
func (s *split) Close() {
	s.cancel()
	s.appends.Wait()
	_ = s.down.body.Close()
	s.down.end(s.record)
}

// ExchangeID returns the number of the call for the server's half in the capture; 0 if it is not
// recorded.
func (s *split) ExchangeID() int64 { return idOf(s.record) }
