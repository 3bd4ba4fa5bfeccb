// Package follow puts the answers of exchanges together while they are recorded.
//
// A Follower takes the events of a capture in their order. From time to time it is
// asked for what has come of each answer; of an exchange that has ended it tells the
// rest at once:
//
//	for event := range events {
//		last, done := f.Event(event)
//		…
//	}
//
// Exchanges that are pieces of one stream are held, as far as bounds allow, and joined with
// each new one: the stream has one answer.
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

// scoringShare bounds the time that is spent on scoring: one part of so many.
const scoringShare = 8

// Options of a Follower. The zero value is the default.
type Options struct {
	// Profile is what is known of the service; nil is nothing.
	Profile *profile.Profile
	// Scoring are options of the transcripts.
	Scoring transcript.Options
	// Only is the one exchange that is wanted. Default: all.
	Only int64
	// Parts has each call followed alone, where several are one conversation.
	Parts bool
}

// An Update is what has come of an answer.
type Update struct {
	Exchange   *decode.Exchange
	Transcript *transcript.Transcript

	// Changed says that there is more of the answer, or another one.
	Changed bool
	// Reset says that Before was not the answer: More is all of it.
	Reset bool
	// Before is the answer until now, and More what has come since.
	Before, More string
}

// A Follower holds the exchanges that are going on.
//
// Limits: of conversations in pieces, 4,096 exchanges and 64 MiB.
type Follower struct {
	o       Options
	running map[int64]*running
	pieces  pieces
}

// A running exchange is one that is followed.
type running struct {
	stream *decode.Stream
	ex     *decode.Exchange
	// piece says that it is a piece of a conversation, which is followed in its place.
	piece bool

	// unscored says that frames came since it was scored.
	unscored bool
	// answer is what was told of the answer.
	answer string
	// next is when it may be scored again.
	next time.Time
}

// New returns a Follower of nothing yet.
func New(o Options) *Follower {
	return &Follower{o: o, running: map[int64]*running{}, pieces: pieces{profile: o.Profile, heads: map[int64]*running{}}}
}

// Event takes what was recorded. Of an exchange that has ended it returns the rest of
// the answer, or nil where it is told with another's; done says that it was the only
// one that is wanted.
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
		// What it is a piece of has more to say.
		_, _ = f.whole(r)
		return nil, false
	}
	return f.update(r, true), f.o.Only != 0
}

// begin follows an exchange, if it is wanted.
func (f *Follower) begin(ex *captures.Exchange) {
	if ex.Transport != captures.HTTP && ex.Transport != captures.WebSocket {
		return // its bytes are no messages
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

// addFrames adds frames that have come. They may alias their chunks, which are this
// exchange's alone.
func (r *running) addFrames(frames []decode.Frame) {
	frames = decode.WithoutControl(frames)
	r.ex.Frames = append(r.ex.Frames, frames...)
	r.unscored = r.unscored || len(frames) > 0
}

// Flush tells what has come of each answer: of those that may be scored again by now,
// or with all of all.
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

// update scores an exchange, or the conversation that it is of; it is nil for a piece
// that is told with another.
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
		// The rest of a rune may be to come.
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
