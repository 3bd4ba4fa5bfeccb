// Package follow assembles the answers of exchanges while they are being recorded, for `unwire chat --follow`
// and the workbench.
//
// A Follower receives the events of a capture in order. Flush reports, from time to time, what was added to each
// answer. When an exchange ends, Event returns the rest:
//
//	for event := range events {
//		last, done := f.Event(event)
//		…
//	}
//
// Exchanges that are pieces of one stream are kept in memory, within limits, and joined with each new piece. The
// stream has a single answer.
package follow

import (
	"maps"
	"slices"
	"strings"
	"time"

	"unwire/captures"
	"unwire/captures/profile"
	"unwire/decode"
	"unwire/decode/conversation"
	"unwire/decode/transcript"
)

// scoringShare limits classification to one part in scoringShare of the time: after each one, a Follower waits that
// many times its duration.
const scoringShare = 8

// Options configures a Follower. The zero value is the default.
type Options struct {
	// Profile describes the service, or is nil.
	Profile *profile.Profile

	// Scoring are the options for extracting the transcripts.
	Scoring transcript.Options

	// Only is the number of the only exchange to follow. The default, 0, follows all.
	Only int64

	// Parts follows each call on its own, even if several form one conversation.
	Parts bool
}

// An Update is a new state of the answer of an exchange that is being recorded.
type Update struct {
	// Exchange is the exchange or the joined conversation.
	Exchange *decode.Exchange

	// Transcript is its transcript so far.
	Transcript *transcript.Transcript

	// Changed means that the answer has grown or changed since it was last reported.
	Changed bool

	// Reset means that the answer does not begin with Before. More is then the whole answer.
	Reset bool

	// Before is the answer as last reported, and More is the text that was added since.
	Before, More string
}

// A Follower extracts the answers of exchanges while they are being recorded.
//
// Limits: for conversations that are split over several exchanges, 4,096 exchanges and 64 MiB.
type Follower struct {
	// o are the options.
	o Options

	// running has the exchanges in progress by number.
	running map[int64]*running

	// pieces has the exchanges that belong to conversations split over several exchanges.
	pieces pieces
}

// A running is an exchange that is being followed.
type running struct {
	// stream decodes the exchange as it arrives.
	stream *decode.Stream

	// ex is the exchange with the frames decoded so far.
	ex *decode.Exchange

	// piece means that the exchange may belong to a conversation that is split over several exchanges, and is then
	// classified with the others.
	piece bool

	// unscored means that frames arrived since the last classification.
	unscored bool

	// answer is the answer as last reported.
	answer string

	// next is the time before which the exchange is not classified again.
	next time.Time
}

// New returns a Follower without exchanges.
func New(o Options) *Follower {
	return &Follower{o: o, running: map[int64]*running{}, pieces: pieces{profile: o.Profile, heads: map[int64]*running{}}}
}

// Event processes an event of the recording. If the event ends an exchange, it returns the rest of the answer, or
// nil if that is reported with another exchange. done means that the exchange Options.Only has ended.
func (f *Follower) Event(ev captures.Event) (ended *Update, done bool) {
	id := ev.Chunk.Exchange
	if ev.Exchange != nil {
		id = ev.Exchange.ID
	}
	r := f.running[id]
	switch {
	case ev.Kind == captures.Began:
		f.begin(ev.Exchange)
		return nil, false
	case r == nil:
		return nil, false
	case ev.Kind == captures.Received:
		r.addFrames(r.stream.Feed(ev.Chunk))
		return nil, false
	}
	r.stream.Update(ev.Exchange)
	r.ex.Exchange = *ev.Exchange
	if ev.Kind != captures.Ended {
		return nil, false
	}

	r.addFrames(r.stream.Close())
	r.ex.Call = r.stream.Call()
	r.ex.Code, r.ex.Message = r.stream.Status()
	delete(f.running, id)
	if f.o.Only != 0 && id != f.o.Only {
		// The conversation that it is a piece of may still change.
		_, _ = f.whole(r)
		return nil, false
	}
	return f.update(r, true), f.o.Only != 0
}

// begin starts to follow an exchange that has begun, if it is wanted.
func (f *Follower) begin(ex *captures.Exchange) {
	if ex.Transport != captures.HTTP && ex.Transport != captures.WebSocket {
		// Bytes without messages have no answer.
		return
	}
	r := &running{
		stream: decode.NewStream(ex, decode.Options{Profile: f.o.Profile}), ex: &decode.Exchange{Exchange: *ex, Profile: f.o.Profile},
		piece: !f.o.Parts && conversation.IsPiece(f.o.Profile, decode.Classify(ex)),
	}
	r.ex.Call = r.stream.Call()
	if f.o.Only != 0 && ex.ID != f.o.Only && !r.piece {
		return
	}
	if f.running[ex.ID] = r; r.piece {
		f.pieces.addExchange(r.ex)
	}
}

// addFrames adds decoded frames to the exchange. Their data may alias the fed chunks, which are not reused.
func (r *running) addFrames(frames []decode.Frame) {
	frames = decode.WithoutControl(frames)
	r.ex.Frames = append(r.ex.Frames, frames...)
	r.unscored = r.unscored || len(frames) > 0
}

// Flush classifies the exchanges with new frames whose waiting time is over, or all of them if all is true, and
// calls tell with the update of each.
func (f *Follower) Flush(all bool, tell func(*Update) error) error {
	now := time.Now()
	for _, id := range slices.Sorted(maps.Keys(f.running)) {
		r := f.running[id]
		if !r.unscored || !all && now.Before(r.next) || f.o.Only != 0 && id != f.o.Only {
			continue
		}
		if u := f.update(r, all); u != nil {
			if err := tell(u); err != nil {
				return err
			}
		}
		r.next = time.Now().Add(scoringShare * time.Since(now))
	}
	return nil
}

// update classifies an exchange, or the conversation to which it belongs. It returns nil for an exchange whose
// conversation is reported with another one. complete means that no more frames follow.
func (f *Follower) update(r *running, complete bool) *Update {
	r.unscored = false
	r.ex.Call = r.stream.Call()
	ex, told := f.whole(r)
	if ex == nil {
		return nil
	}
	u := &Update{Exchange: ex, Transcript: transcript.Extract(ex, f.o.Scoring)}
	answer := u.Transcript.Answer
	if !complete {
		// The rest of a character may be missing.
		answer = strings.TrimRight(answer, "\uFFFD")
	}
	if answer == told.answer || answer == "" && !complete {
		return u
	}
	u.Changed, u.Before = true, told.answer
	more, goesOn := strings.CutPrefix(answer, told.answer)
	if u.More = more; !goesOn {
		u.Reset, u.More = true, answer
	}
	told.answer = answer
	return u
}
