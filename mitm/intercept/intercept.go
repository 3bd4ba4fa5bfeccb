// Package intercept holds frames until a person has decided about them. A Holder is where frames wait
// (rules.Options.Hold). Serve makes it available to other programs of the same user, and Dial is their side:
//
//	holder := intercept.New(intercept.Options{})
//	server, err := intercept.Serve("a.uwc", holder)
//	…
//	client, err := intercept.Dial("a.uwc")
//	frames, err := client.Held(ctx, 0, time.Minute)
//	err = client.Decide(ctx, frames[0].ID, intercept.Decision{Action: "release"})
//
// A held frame is released unchanged after Options.MaxTime, if too many bytes are held, and when the Holder closes.
//
// The server listens on a Unix socket in a private folder (on Windows, on a port of 127.0.0.1). Its address and a
// token are in a file next to the capture, which only the user can read.
//
// Source: mitm/README.md#intercept
package intercept

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"unwire/mitm/rules"
)

const (
	// defaultMaxTime and defaultMaxBytes are the defaults of Options; maxFrames limits the number of held
	// frames.
	defaultMaxTime  = 10 * time.Minute
	defaultMaxBytes = 256 << 20
	maxFrames       = 100_000
)

// Options are the options of New. The zero value has the defaults.
type Options struct {
	// MaxTime is how long a frame is held if nobody decides; then it is forwarded unchanged. The default is 10
	// minutes.
	MaxTime time.Duration

	// MaxBytes limits the size of all held frames in bytes; further frames are forwarded at once. The default
	// is 256 MiB.
	MaxBytes int64

	// Changed, if set, is called when a frame begins to be held, and when it no longer is.
	Changed func(f Frame, held bool)
}

// A Frame is a held frame, i.e. one whose forwarding is delayed until a user decides about it.
type Frame struct {
	// ID identifies the frame in its Holder. It counts from 1.
	ID int64 `json:"id"`
	// Exchange is the ID of the frame's exchange; 0 if it is not recorded.
	Exchange int64 `json:"exchange"`
	// Method is the RPC method, "/package.Service/Method"; "" if the exchange is not a call.
	Method string `json:"method"`
	// URL is the URL of the request.
	URL string `json:"url"`
	// Dir is "up" or "down".
	Dir string `json:"dir"`
	// Number is the number of the frame in its direction, from 0.
	Number int `json:"frame"`
	// Flags are the flags of the frame's envelope; 0 if the frame has no envelope.
	Flags int `json:"flags"`
	// JSON means that the message is JSON text, not protobuf.
	JSON bool `json:"json"`
	// Rule is the name of the rule that holds the frame, or "intercept".
	Rule string `json:"rule"`
	// Since is when the frame arrived.
	Since time.Time `json:"since"`
	// Until is when the frame will be released unchanged if nobody decides about it.
	Until time.Time `json:"until"`
	// Data is the message, decompressed.
	Data []byte `json:"data"`
}

// A Decision says what happens to a held frame.
type Decision struct {
	// Action is "release" (forward unchanged), "drop" or "replace".
	Action string `json:"action"`
	// Messages are forwarded instead of the frame if Action is "replace".
	Messages [][]byte `json:"messages,omitempty"`
}

// ErrNotHeld is the error for an ID of a frame that is not held, or no longer.
var ErrNotHeld = errors.New("the frame is not held")

// check returns an error if the decision is invalid.
func (d Decision) check() error {
	switch d.Action {
	case "release", "drop":
		if len(d.Messages) > 0 {
			return fmt.Errorf("the action %s must have no messages", d.Action)
		}
	case "replace":
		if len(d.Messages) == 0 {
			return errors.New("the action replace needs messages; to remove a frame, use drop")
		}
	default:
		return fmt.Errorf("%q is not an action: release, drop or replace", d.Action)
	}
	return nil
}

// A Holder contains the held frames of a recorder. It is safe for concurrent use.
type Holder struct {
	// o are the options of the holder.
	o Options

	// mu guards the fields below.
	mu sync.Mutex

	// changed is signalled when held changes.
	changed sync.Cond
	// held are the frames that are held at the moment, by ID.
	held map[int64]*heldFrame

	// last is the ID of the last held frame.
	last int64
	// bytes is the total size of all held messages.
	bytes int64
	// closed means that no more frames are held.
	closed bool
}

// A heldFrame is a held frame with the channel that receives the decision.
type heldFrame struct {
	// Frame is the held frame.
	Frame
	// decided receives the decision of the user.
	decided chan Decision
}

// New returns a Holder, which keeps intercepted frames until the user releases them. It contains none at first.
func New(o Options) *Holder {
	if o.MaxTime <= 0 {
		o.MaxTime = defaultMaxTime
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = defaultMaxBytes
	}
	h := &Holder{o: o, held: make(map[int64]*heldFrame)}
	h.changed.L = &h.mu
	return h
}

// Hold holds a frame until there is a decision. If changed is true, messages are to be forwarded instead of the
// frame (none to drop it); otherwise the frame is forwarded unchanged.
func (h *Holder) Hold(ctx context.Context, in rules.Held) (messages [][]byte, changed bool) {
	f := h.add(in)
	if f == nil {
		return nil, false
	}
	if h.o.Changed != nil {
		h.o.Changed(f.Frame, true)
		defer h.o.Changed(f.Frame, false)
	}

	// A frame that nobody decides about must not block its exchange for ever: it is released unchanged.
	timer := time.NewTimer(time.Until(f.Until))
	defer timer.Stop()
	var d Decision
	select {
	case d = <-f.decided:
	case <-timer.C:
		d = h.remove(f)
	case <-ctx.Done():
		d = h.remove(f)
	}
	switch d.Action {
	case "drop":
		return nil, true
	case "replace":
		return d.Messages, true
	}
	return nil, false
}

// add adds a frame to the held ones. It returns nil if a limit is reached or the Holder is closed.
func (h *Holder) add(in rules.Held) *heldFrame {
	h.mu.Lock()
	defer h.mu.Unlock()
	size := int64(len(in.Data))
	if h.closed || h.bytes+size > h.o.MaxBytes || len(h.held) >= maxFrames {
		return nil
	}
	h.last++
	now := time.Now()
	f := &heldFrame{decided: make(chan Decision, 1), Frame: Frame{
		ID: h.last, Exchange: in.Exchange.ID, URL: in.Exchange.URL, Dir: in.Frame.Dir.String(), Number: in.Frame.Number,
		Flags: int(in.Frame.Flags), JSON: in.JSON, Rule: in.Rule, Since: now, Until: now.Add(h.o.MaxTime), Data: in.Data,
	}}
	if in.Call.RPC != "" {
		f.Method = "/" + in.Call.Service + "/" + in.Call.RPC
	}
	h.held[f.ID] = f
	h.bytes += size
	h.changed.Broadcast()
	return f
}

// remove ends the holding of a frame, and returns the decision if one was made meanwhile.
func (h *Holder) remove(f *heldFrame) (d Decision) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.held[f.ID] == nil {
		return <-f.decided
	}
	h.forget(f)
	return Decision{}
}

// forget removes a frame from the held ones. The caller has locked h.mu.
func (h *Holder) forget(f *heldFrame) {
	delete(h.held, f.ID)
	h.bytes -= int64(len(f.Data))
	h.changed.Broadcast()
}

// Decide decides about a held frame.
//
// Errors: ErrNotHeld.
func (h *Holder) Decide(id int64, d Decision) error {
	if err := d.check(); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.held[id]
	if f == nil {
		return fmt.Errorf("%w: frame %d", ErrNotHeld, id)
	}
	h.forget(f)
	f.decided <- d
	return nil
}

// ReleaseAll releases all held frames unchanged, and returns their number.
func (h *Holder) ReleaseAll() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := len(h.held)
	for _, f := range h.held {
		h.forget(f)
		f.decided <- Decision{Action: "release"}
	}
	return n
}

// Close releases all held frames unchanged. No further frame is held.
func (h *Holder) Close() {
	h.mu.Lock()
	h.closed = true
	h.changed.Broadcast()
	h.mu.Unlock()
	h.ReleaseAll()
}

// Held returns the held frames with an ID above after, by ID. If there are none, it waits until there is one, until
// the Holder closes, or until ctx ends.
func (h *Holder) Held(ctx context.Context, after int64) (frames []Frame) {
	defer context.AfterFunc(ctx, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.changed.Broadcast()
	})()
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		for _, f := range h.held {
			if f.ID > after {
				frames = append(frames, f.Frame)
			}
		}
		if len(frames) > 0 || h.closed || ctx.Err() != nil {
			break
		}
		h.changed.Wait()
	}
	slices.SortFunc(frames, func(a, b Frame) int { return int(a.ID - b.ID) })
	return frames
}
