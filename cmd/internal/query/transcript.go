package query

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/conversation"
	"unwire/decode/transcript"
	"unwire/decode/transcript/follow"
)

// TranscriptOptions say how conversations are extracted. The zero value is the default.
type TranscriptOptions struct {
	transcript.Options

	// Parts has each call extracted alone, where several are one conversation.
	Parts bool
}

// Transcript extracts the conversation of an exchange.
//
// Errors: of a damaged capture, with what is readable of the exchange; without an
// exchange there is no transcript either.
func (c *Capture) Transcript(ctx context.Context, at Address, o TranscriptOptions) (*decode.Exchange, *transcript.Transcript, error) {
	ex, err := c.Resolve(ctx, at.Exchange, at.Part || o.Parts)
	if ex.Exchange == nil {
		return nil, nil, err
	}
	if !hasMessages(&ex.Exchange.Exchange) {
		return nil, nil, fmt.Errorf("exchange %d is of protocol %s: its bytes are no messages, and so no conversation", ex.ID, ex.Protocol)
	}
	ex.Frames = decode.WithoutControl(ex.Frames)
	return ex.Exchange, transcript.Extract(ex.Exchange, o.Options), err
}

// hasMessages reports an exchange that a conversation can be in.
func hasMessages(ex *captures.Exchange) bool {
	return ex.Transport == captures.HTTP || ex.Transport == captures.WebSocket
}

// EachTranscript calls do with each exchange of a capture and its conversation.
//
// Errors: those of do, which end it, and what of the capture could not be read.
func (c *Capture) EachTranscript(ctx context.Context, o TranscriptOptions, do func(*decode.Exchange, *transcript.Transcript) error) error {
	return conversation.EachWhole(ctx, c.Store, o.Parts, func(ex *decode.Exchange) error {
		if !hasMessages(&ex.Exchange) {
			return nil
		}
		ex.Frames = decode.WithoutControl(ex.Frames)
		return do(ex, transcript.Extract(ex, o.Options))
	})
}

// A Label says which role the candidates at a path of an exchange have.
type Label struct {
	At   Address
	Dir  string // "up", "down", or "" for both
	Path string
	Role transcript.Role
}

// LabelLines returns the lines of a labels file that say what a label does, and their
// number: one for each candidate at the path.
func (c *Capture) LabelLines(ctx context.Context, l Label, o TranscriptOptions) ([]byte, int, error) {
	_, tr, err := c.Transcript(ctx, l.At, o)
	if err != nil {
		return nil, 0, err
	}
	var lines bytes.Buffer
	e := json.NewEncoder(&lines)
	e.SetEscapeHTML(false)
	source := fmt.Sprintf("%s#%d", filepath.Base(l.At.File), l.At.Exchange)
	count := 0
	for i := range tr.Candidates {
		candidate := &tr.Candidates[i]
		if candidate.Path != l.Path || l.Dir != "" && candidate.Dir != l.Dir {
			continue
		}
		if err := e.Encode(candidate.Label(source, l.Role)); err != nil {
			return nil, 0, err
		}
		count++
	}
	return lines.Bytes(), count, nil
}

// MayCome reports whether an exchange that the capture does not have may still be
// recorded: the capture is empty, or one of its exchanges is going on.
//
// Errors: captures.ErrNoExchange if it will not come.
func (c *Capture) MayCome(ctx context.Context, id int64) (bool, error) {
	_, missing := c.Exchange(ctx, id)
	if !errors.Is(missing, captures.ErrNoExchange) {
		return false, missing
	}
	empty := true
	for ex, err := range c.Exchanges(ctx) {
		if err != nil {
			return false, err
		}
		if ex.Outcome == captures.InFlight {
			return true, nil
		}
		empty = false
	}
	if !empty {
		return false, missing
	}
	return true, nil
}

// followInterval is how often what was recorded meanwhile is looked for, and reported.
const followInterval = 50 * time.Millisecond

// FollowAnswers calls update with what comes of answers while they are recorded: until
// the exchange only has ended, or, if only is 0, until ctx ends. ended is set for the
// rest of an exchange that has ended.
//
// Errors: those of update, which end it, and what of the capture could not be read.
func (c *Capture) FollowAnswers(ctx context.Context, only int64, o TranscriptOptions, update func(u *follow.Update, ended bool) error) error {
	ctx, stop := context.WithCancel(ctx)
	events := c.events(ctx)
	defer func() {
		stop()
		for range events { // the reader has ended before the store is closed
		}
	}()

	f := follow.New(follow.Options{Profile: c.Profile(), Scoring: o.Options, Only: only, Parts: o.Parts})
	more := func(u *follow.Update) error { return update(u, false) }
	ticker := time.NewTicker(followInterval)
	defer ticker.Stop()
	for {
		select {
		case e, ok := <-events:
			if !ok {
				return f.Flush(true, more)
			}
			if e.err != nil {
				return e.err
			}
			last, done := f.Event(e.Event)
			if last != nil {
				if err := update(last, true); err != nil {
					return err
				}
			}
			if done {
				return nil
			}
		case <-ticker.C:
			if err := f.Flush(false, more); err != nil {
				return err
			}
		}
	}
}

// A recordedEvent is an event of a capture, or why there are no more.
type recordedEvent struct {
	captures.Event
	err error
}

// events sends what is recorded until ctx ends.
func (c *Capture) events(ctx context.Context) <-chan recordedEvent {
	events := make(chan recordedEvent)
	go func() {
		defer close(events)
		for ev, err := range c.Follow(ctx, followInterval) {
			select {
			case events <- recordedEvent{ev, err}:
			case <-ctx.Done():
				return
			}
		}
	}()
	return events
}
