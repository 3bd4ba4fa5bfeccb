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

// TranscriptOptions say how conversations with language models are extracted. The zero value is the
// default.
type TranscriptOptions struct {
	// Options are the options of the extraction, such as the weights.
	transcript.Options

	// Parts treats each call separately, even if several calls form one conversation.
	Parts bool
}

// Transcript extracts the conversation with a language model from the exchange at an address.
//
// Errors: for a damaged capture, the damage together with what is readable. If the exchange cannot be
// read at all, the results are nil.
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

// hasMessages reports whether an exchange consists of messages that can contain a conversation: it is
// HTTP or a WebSocket.
func hasMessages(ex *captures.Exchange) bool {
	return ex.Transport == captures.HTTP || ex.Transport == captures.WebSocket
}

// Limits for EachTranscript, which holds back transcripts until the results of their tool calls are
// known.
const (
	// maxWaiting is the largest number of transcripts that are held back.
	maxWaiting = 64

	// maxWaitingBytes is the total size in bytes of the bodies of their exchanges.
	maxWaitingBytes = 32 << 20
)

// EachTranscript calls do with each exchange of a capture and its conversation, in order. For stateless
// APIs, whose requests repeat the whole conversation, the exchanges are connected: a tool call gets the
// result that the next request contains.
//
// Limits: a transcript with tool calls without results is held back for at most 64 further exchanges.
// Errors: those of do, which stop it, and parts of the capture that could not be read.
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

// A Label says which role the texts at a path of an exchange have, for fitting weights.
type Label struct {
	// At is the address of the exchange.
	At Address

	// Dir is "up" or "down"; "" for both directions.
	Dir string

	// Path is the path of the field.
	Path string

	// Role is the role of its text, such as assistant.
	Role transcript.Role
}

// LabelLines returns the lines of a labels file that record a label, one for each candidate text at its
// path, and their number.
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

// MayCome reports whether an exchange that the capture does not have yet may still be recorded: the
// capture is empty, a process is recording to it, or one of its exchanges is in flight. It returns false
// and nil if the exchange exists.
//
// Errors: captures.ErrNoExchange if the exchange will not be recorded.
func (c *Capture) MayCome(ctx context.Context, id int64) (bool, error) {
	// A recorder stores its last exchanges before it stops, so look for the recorder first.
	recording := c.Recording()
	_, missing := c.Exchange(ctx, id)
	if !errors.Is(missing, captures.ErrNoExchange) {
		return false, missing
	}
	if recording {
		return true, nil
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

// followInterval is the interval at which new data is read and answers are updated.
const followInterval = 50 * time.Millisecond

// FollowAnswers calls update with each new part of a language model's answers while they are recorded. It
// ends when the exchange only has ended or, if only is 0, when ctx is done. ended is true for the last
// update of an exchange.
//
// Errors: those of update, which stop it, and parts of the capture that could not be read.
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

// A recordedEvent is an event of a capture that is being recorded, or the error that ended the events.
type recordedEvent struct {
	// Event is the event; zero if err is set.
	captures.Event

	// err is the error that ended the events; nil for an event.
	err error
}

// events returns a channel that receives the capture's events while it is recorded, until ctx is done.
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
