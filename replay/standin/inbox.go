package standin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// What a client may send before it is asked.
const (
	maxPending      = 10_000
	maxPendingBytes = 64 << 20
)

var errCancelled = errors.New("the client cancelled the turn")

// An inbox holds what a client sent in one call until the turn asks for it.
// A client answers in its own order and sends heartbeats in between.
type inbox struct {
	arrive  chan *dynamicpb.Message
	end     error // why there is no more; set before arrive is closed
	pending []*dynamicpb.Message
	bytes   int // of pending
}

// fill receives until receive fails or ctx ends.
func fill(ctx context.Context, receive func() (*dynamicpb.Message, error)) *inbox {
	in := &inbox{arrive: make(chan *dynamicpb.Message)}
	go func() {
		defer close(in.arrive)
		for {
			m, err := receive()
			if err != nil {
				in.end = err
				return
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

// await returns the first message that match accepts, among those that came
// before and those to come. match gets the client message's member and what it is.
//
// Errors: deadline_exceeded when nothing came in time; failed_precondition when
// the client closed its side; the transport's own; errCancelled.
func (in *inbox) await(ctx context.Context, limit time.Duration, what string, match func(kind protoreflect.Name, m protoreflect.Message) bool) (protoreflect.Message, error) {
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
			if !ok {
				return nil, in.ended(what)
			}
			kind, inner := member(m)
			if match(kind, inner) {
				return inner, nil
			}
			if err := in.keep(kind, m); err != nil {
				return nil, err
			}
		case <-timer.C:
			return nil, connect.NewError(connect.CodeDeadlineExceeded, fmt.Errorf("no answer to %s within %v", what, limit))
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// poll takes in what has arrived, without waiting.
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
			kind, _ := member(m)
			if err := in.keep(kind, m); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

func (in *inbox) ended(what string) error {
	if errors.Is(in.end, io.EOF) {
		return connect.NewError(connect.CodeFailedPrecondition, fmt.Errorf("the client closed its side before it answered %s", what))
	}
	return in.end
}

// keep stores what nobody waits for yet; what never answers anything is dropped.
func (in *inbox) keep(kind protoreflect.Name, m *dynamicpb.Message) error {
	switch kind {
	case "client_heartbeat", "prewarm_request", "":
		return nil
	case "conversation_action":
		if has(m, "conversation_action", "cancel_action") {
			return errCancelled
		}
		return nil
	}
	in.bytes += proto.Size(m)
	if len(in.pending) == maxPending || in.bytes > maxPendingBytes {
		return connect.NewError(connect.CodeResourceExhausted, fmt.Errorf("%d messages (%d bytes) that nothing asked for", len(in.pending)+1, in.bytes))
	}
	in.pending = append(in.pending, m)
	return nil
}

// member returns the name and the message of the one member that a client or
// server message has.
func member(m protoreflect.Message) (kind protoreflect.Name, inner protoreflect.Message) {
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if fd.Message() != nil && !fd.IsList() && !fd.IsMap() {
			kind, inner = fd.Name(), v.Message()
		}
		return false
	})
	return kind, inner
}
