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
	"unwire/decode/transcript/loop"
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
		return nil, nil, fmt.Errorf("exchange %d has the protocol %s, whose bytes are not split into messages, so it contains no conversation", ex.ID, ex.Protocol)
	}
	ex.Frames = decode.WithoutControl(ex.Frames)
	return ex.Exchange, transcript.Extract(ex.Exchange, o.Options), err
}

// hasMessages reports an exchange that a conversation can be in.
func hasMessages(ex *captures.Exchange) bool {
	return ex.Transport == captures.HTTP || ex.Transport == captures.WebSocket
}

// Limits of waiting for the results of calls.
const (
	// maxWaiting is the maximum number of transcripts that wait.
	maxWaiting = 64

	// maxWaitingBytes is the maximum size in bytes of the bodies of their exchanges.
	maxWaitingBytes = 32 << 20
)

// EachTranscript calls do with each exchange of a capture and its conversation. The exchanges of a conversation with a
// stateless API are connected: a call has its result, which the next request brings.
//
// Limits: a transcript whose calls have no results waits for at most 64 further exchanges.
//
// Errors: those of do, which end it, and what of the capture could not be read.
func (c *Capture) EachTranscript(ctx context.Context, o TranscriptOptions, do func(*decode.Exchange, *transcript.Transcript) error) error {
	linker := loop.New()
	type pair struct {
		ex *decode.Exchange
		tr *transcript.Transcript
	}
	var waiting []pair
	var size int64
	var stop error
	// The order stays that of the capture, so one transcript that waits holds back those behind it.
	flush := func(all bool) error {
		for len(waiting) > 0 {
			first := waiting[0]
			if !all && loop.Unanswered(first.tr) && len(waiting) < maxWaiting && size < maxWaitingBytes {
				return nil
			}
			waiting, size = waiting[1:], size-bodySize(first.ex)
			if stop = do(first.ex, first.tr); stop != nil {
				return stop
			}
		}
		return nil
	}
	err := conversation.EachWhole(ctx, c.Store, o.Parts, func(ex *decode.Exchange) error {
		if !hasMessages(&ex.Exchange) {
			return nil
		}
		ex.Frames = decode.WithoutControl(ex.Frames)
		tr := transcript.Extract(ex, o.Options)
		linker.Add(ex.ID, tr)
		waiting, size = append(waiting, pair{ex, tr}), size+bodySize(ex)
		return flush(false)
	})
	if ctx.Err() != nil || stop != nil {
		return err
	}
	if ferr := flush(true); ferr != nil {
		return ferr
	}
	return err
}

// bodySize returns the size in bytes of the frames of an exchange.
func bodySize(ex *decode.Exchange) int64 {
	n := int64(0)
	for i := range ex.Frames {
		n += int64(len(ex.Frames[i].Data))
	}
	return n
}

// A Label says which role the candidates at a path of an exchange have.
type Label struct {
	// At is the frame, Path the field in it, and Role the author of its text.
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

// FollowAnswers calls update with each new part of the answers that are being recorded: until the
// exchange only has ended or, if only is 0, until ctx ends. ended is set with the last part of an
// exchange.
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
	// The ticker limits how often a growing answer is evaluated.
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
