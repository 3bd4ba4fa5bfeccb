package standin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// Limits for messages that a client sends before the turn needs them.
const (
	// Limits for messages that a client sends before the turn needs them: their number and their size
	// in bytes.
	maxPending      = 10_000
	maxPendingBytes = 64 << 20
)

// errCancelled reports that the client sent a cancel_action.
var errCancelled = errors.New("the client canceled the request")

// An inbox buffers the messages that a client sends in one call until the turn needs them, because
// clients may respond in any order and send heartbeats in between.
type inbox struct {
	// arrive passes received messages to the turn; it is closed at the end.
	arrive chan *dynamicpb.Message
	// end is the reason why no more messages follow; it is set before arrive is closed.
	end error

	// pending are the buffered messages.
	pending []*dynamicpb.Message

	// bytes is the size of the pending messages.
	bytes int
	// cancelled is set as soon as a cancel_action arrives, even before it is processed.
	cancelled atomic.Bool
}

// fill starts to receive and count messages, and returns the inbox that gets them. It ends when receive
// fails or ctx ends.
func (s *Server) fill(ctx context.Context, receive func() (*dynamicpb.Message, error)) *inbox {
	in := &inbox{arrive: make(chan *dynamicpb.Message)}
	go func() {
		defer close(in.arrive)
		for {
			m, err := receive()
			if err != nil {
				in.end = err
				return
			}
			if s.countReceived(m) {
				in.cancelled.Store(true)
			}
			select {
			case in.arrive <- m:
			case <-ctx.Done():
				in.end = ctx.Err()
				return
			}
		}
	}()
	return in
}

// await returns the first message that match accepts, among the buffered and the following ones. match
// is called with name and content of the member that is set in the client's message. what describes the
// message in errors, and limit is the longest time to wait.
//
// Errors: deadline_exceeded after limit; failed_precondition if the client ended its half of the
// stream; errors of the transport; errCancelled.
func (in *inbox) await(ctx context.Context, limit time.Duration, what string, match func(kind protoreflect.Name, m protoreflect.Message) bool) (protoreflect.Message, error) {
	// The message may have arrived before the step that waits for it.
	for i, m := range in.pending {
		if kind, inner := member(m); match(kind, inner) {
			in.pending = slices.Delete(in.pending, i, i+1)
			in.bytes -= proto.Size(m)
			return inner, nil
		}
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		select {
		case m, ok := <-in.arrive:
			// The client closed its half, so no answer will come.
			if !ok {
				return nil, in.ended(what)
			}
			kind, inner := member(m)
			if match(kind, inner) {
				return inner, nil
			}
			// A client that works on a long call says so.
			if kind == "exec_client_control_message" && has(inner, "heartbeat") {
				timer.Reset(limit)
			}
			if err := in.keep(kind, m); err != nil {
				return nil, err
			}
		case <-timer.C:
			return nil, connect.NewError(connect.CodeDeadlineExceeded, fmt.Errorf("no answer to %s within %v", what, limit))
		case <-ctx.Done():
			return nil, in.gone(ctx)
		}
	}
}

// sleep waits for a number of milliseconds, and buffers the messages that arrive in the meantime.
func (in *inbox) sleep(ctx context.Context, ms int) error {
	if err := in.poll(); err != nil || ms == 0 {
		return errors.Join(err, ctx.Err())
	}
	timer := time.NewTimer(time.Duration(ms) * time.Millisecond)
	defer timer.Stop()
	arrive := in.arrive
	for {
		select {
		case m, ok := <-arrive:
			switch {
			case ok:
				if err := in.keepMember(m); err != nil {
					return err
				}
			case errors.Is(in.end, io.EOF):
				arrive = nil
			default:
				return in.end
			}
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return in.gone(ctx)
		}
	}
}

// failed reports whether err means that the client's half of the stream broke off.
func (in *inbox) failed(err error) bool {
	if err == nil || in.cancelled.Load() {
		return false
	}
	select {
	case _, open := <-in.arrive:
		return !open && !errors.Is(in.end, io.EOF) && errors.Is(err, in.end)
	default:
		return false
	}
}

// gone returns the error for a call whose context has ended: errCancelled if the client had cancelled
// before.
func (in *inbox) gone(ctx context.Context) error {
	if in.cancelled.Load() {
		return errCancelled
	}
	return ctx.Err()
}

// poll buffers the messages that have arrived, without waiting.
func (in *inbox) poll() error {
	for {
		select {
		case m, ok := <-in.arrive:
			if !ok {
				if errors.Is(in.end, io.EOF) {
					return nil
				}
				return in.end
			}
			if err := in.keepMember(m); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

// ended returns the error for a client whose half of the stream ended before the message what.
func (in *inbox) ended(what string) error {
	if errors.Is(in.end, io.EOF) {
		return connect.NewError(connect.CodeFailedPrecondition, fmt.Errorf("the client closed its side before it answered %s", what))
	}
	return in.end
}

// keepMember buffers a client message that is not needed yet. Its kind is the name of the member of the message's oneof
// that is set.
func (in *inbox) keepMember(m *dynamicpb.Message) error {
	kind, _ := member(m)
	return in.keep(kind, m)
}

// keep buffers a message that is not needed yet. Messages that are never a response, such as
// heartbeats, are dropped.
//
// Errors: errCancelled; resource_exhausted above the limits.
func (in *inbox) keep(kind protoreflect.Name, m *dynamicpb.Message) error {
	switch kind {
	case "client_heartbeat", "prewarm_request", "":
		return nil
	case "conversation_action":
		if has(m, "conversation_action", "cancel_action") {
			return errCancelled
		}
		return nil
	case "exec_client_control_message":
		if !has(m, "exec_client_control_message", "throw") {
			return nil
		}
	}
	in.bytes += proto.Size(m)
	if len(in.pending) == maxPending || in.bytes > maxPendingBytes {
		return connect.NewError(connect.CodeResourceExhausted, fmt.Errorf("the client sent %d messages (%d bytes) that the server did not ask for", len(in.pending)+1, in.bytes))
	}
	in.pending = append(in.pending, m)
	return nil
}
