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

// maxAppends is the number of client messages in flight. Servers are reported to accept 16.
const maxAppends = 8

// A split is a stream over HTTP/1.1: the response to one call is the server's half, and each
// message of the client is a call of its own (an append).
type split struct {
	dialer *Dialer
	header http.Header
	id     string
	ctx    context.Context //nolint:containedctx
	cancel context.CancelFunc
	down   *download
	record captures.Recording

	// slots limits the number of concurrent append calls.
	slots   chan struct{}
	appends sync.WaitGroup
	seq     uint64

	mu sync.Mutex
	// failed is the error of the first append that failed.
	failed error
}

// openSSE opens a stream as a call for the server's half, and sends the first append at the same
// time, because a server may wait for either.
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

// open requests the server's half of the split stream.
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

// nest returns a message whose field at the end of a path of numbers is data.
func nest(path []uint64, data []byte) []byte {
	for i := len(path) - 1; i >= 0; i-- {
		out := protowire.AppendTag(nil, protowire.Number(path[i]), protowire.BytesType)
		data = protowire.AppendBytes(out, data)
	}
	return data
}

// Send sends a message as an append. It blocks only while too many are in flight.
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

// add sends one append call with a client message.
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

// fail ends the stream with the error of an append call.
func (s *split) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil && s.ctx.Err() == nil {
		s.failed = err
		s.cancel()
	}
}

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

// Interrupt cancels all calls after the pending appends are sent, or after closeGrace.
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

// ExchangeID returns the number of the server's half in the capture.
func (s *split) ExchangeID() int64 { return idOf(s.record) }
