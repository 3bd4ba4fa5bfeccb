package conversation

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"math"
	"slices"

	"unwire/captures"
	"unwire/captures/profile"
	"unwire/decode"
)

// codeVersion is the version of the code in this file. Raise it with every change that
// gives another summary of the same exchange: older summaries are then derived again.
const codeVersion = 1

// summaryVersion is the version of the summaries that are derived with a profile: a
// profile that joins exchanges in another way has another.
func summaryVersion(p *profile.Profile) int {
	var split profile.Split
	if p != nil {
		split = p.Split
	}
	h := fnv.New32a()
	a := split.Append
	fmt.Fprintf(h, "%q %d %d %d %d\n", a.RPC, a.Text, a.Binary, a.ID, a.Number)
	for _, head := range split.Heads {
		fmt.Fprintf(h, "%q %d %d %d %d\n", head.Suffix, head.ID, head.Number, head.Data, head.EOF)
	}
	return codeVersion<<captures.ProfileBits | int(h.Sum32()&(1<<captures.ProfileBits-1))
}

// A Listed exchange is a line of a listing.
//
// Shape: of captures.Exchange there is what captures.Listed has.
type Listed struct {
	*captures.Exchange
	decode.Call
	Code                 string
	FramesUp, FramesDown int

	// The head of the conversation that it is a piece of; 0 for none.
	Joined int64

	Parts []int64 // of a head, all pieces
}

// A List is the exchanges of a capture, as a listing has them.
type List struct {
	Exchanges []Listed

	derived []captures.Summary // that were not stored
	upTo    int64              // each exchange up to this has a summary now
}

// ListExchanges lists what can be read of a capture.
//
// Shape: what an exchange's stored summary says is taken for true; without one
// the exchange is decoded. Of an exchange whose chunks cannot be read there is
// what was decoded until then.
// Errors: all that could not be read. The exchanges beside it are in the List.
func ListExchanges(ctx context.Context, store captures.SummaryStore) (*List, error) {
	l := &List{upTo: math.MaxInt64}
	all := Set{threads: newThreads(store.Profile())}
	var failed unreadExchanges
	for rec, err := range store.Listing(ctx, summaryVersion(store.Profile())) {
		if err != nil {
			failed.capture = err
			l.upTo = math.MinInt64
			break
		}
		m := rec.Summary
		if m == nil {
			derived, err := summarize(ctx, store, rec)
			if ctx.Err() != nil {
				l.upTo = rec.Exchange.ID - 1
				return l, ctx.Err()
			}
			m = &derived
			failed.addError(err)
			if err == nil && rec.Exchange.Ended() {
				l.derived = append(l.derived, derived)
			} else {
				l.upTo = min(l.upTo, m.Exchange-1)
			}
		}
		ex := Listed{
			Exchange: rec.Exchange, Call: callOf(m), Code: m.Code,
			FramesUp: m.FramesUp, FramesDown: m.FramesDown,
		}
		all.addCall(ex.ID, ex.Call, m.Thread)
		l.Exchanges = append(l.Exchanges, ex)
	}
	for i := range l.Exchanges {
		ex := &l.Exchanges[i]
		ex.Joined, ex.Parts = all.Head(ex.ID), all.parts(ex.ID)
	}
	if n := len(l.Exchanges); n > 0 {
		l.upTo = min(l.upTo, l.Exchanges[n-1].ID)
	}
	return l, failed.err()
}

// One returns an exchange that has ended as a listing has it, except for its conversation.
//
// Errors: of the source, with what could be read.
func One(ctx context.Context, src captures.Source, id int64) (Listed, error) {
	rec, err := src.Exchange(ctx, id)
	if err != nil {
		return Listed{}, err
	}
	m, err := summarize(ctx, src, captures.Listed{Exchange: rec})
	return Listed{Exchange: rec, Call: callOf(&m), Code: m.Code, FramesUp: m.FramesUp, FramesDown: m.FramesDown}, err
}

// ListStored yields the exchanges of a capture as far as they can be listed without decoding:
// those without a stored summary have no code and no frames.
func ListStored(ctx context.Context, store captures.SummaryStore) iter.Seq2[Listed, error] {
	return func(yield func(Listed, error) bool) {
		for l, err := range store.Listing(ctx, summaryVersion(store.Profile())) {
			if err != nil {
				yield(Listed{}, err)
				return
			}
			ex := Listed{Exchange: l.Exchange}
			if m := l.Summary; m != nil {
				ex.Call, ex.Code, ex.FramesUp, ex.FramesDown = callOf(m), m.Code, m.FramesUp, m.FramesDown
			}
			if !yield(ex, nil) {
				return
			}
		}
	}
}

// unreadExchanges is what could not be read.
type unreadExchanges struct {
	first     error // of an exchange
	exchanges int
	capture   error
}

func (u *unreadExchanges) addError(err error) {
	if err == nil {
		return
	}
	if u.exchanges++; u.exchanges == 1 {
		u.first = err
	}
}

func (u *unreadExchanges) err() error {
	if u.exchanges > 1 {
		u.first = fmt.Errorf("%w\nand %d more exchanges", u.first, u.exchanges-1)
	}
	return errors.Join(u.first, u.capture)
}

// Save stores what the listing had to derive, so that the next need not.
//
// Errors: those of captures.SummaryStore. A capture that cannot be written to
// is listed as well, only slower.
func (l *List) Save(ctx context.Context, store captures.SummaryStore) error {
	if len(l.derived) == 0 {
		return nil
	}
	return store.PutSummaries(ctx, l.derived, l.upTo)
}

// Index derives and stores the summaries that a capture lacks.
//
// Limits: it holds one exchange's incomplete frames at a time, and a summary of
// each exchange.
// Errors: of the store. Where ctx ends before all is derived, what is there is
// stored.
func Index(ctx context.Context, store captures.SummaryStore) error {
	l, err := ListExchanges(ctx, store)
	return errors.Join(err, l.Save(context.WithoutCancel(ctx), store))
}

func callOf(m *captures.Summary) decode.Call {
	return decode.Call{Protocol: decode.Protocol(m.Protocol), Codec: m.Codec, Service: m.Service, RPC: m.RPC}
}

// summarize derives what a listing shows of an exchange, until the first chunk
// that cannot be read.
func summarize(ctx context.Context, src captures.Source, l captures.Listed) (captures.Summary, error) {
	m := captures.Summary{Exchange: l.Exchange.ID, Version: summaryVersion(src.Profile()), Truth: l.Truth}
	rec, err := src.Exchange(ctx, m.Exchange)
	if err != nil {
		return m, fmt.Errorf("decode: exchange %d: %w", m.Exchange, err)
	}
	s := decode.NewStream(rec, decode.Options{NoTrees: true, Profile: src.Profile()})
	var request *requestReader
	if IsPiece(src.Profile(), s.Call()) {
		request = newRequestReader(src.Profile(), rec)
	}
	count := func(frames []decode.Frame) {
		for i := range frames {
			if frames[i].Up() {
				m.FramesUp++
			} else {
				m.FramesDown++
			}
		}
	}
	for chunk, cerr := range src.Chunks(ctx, m.Exchange, 0) {
		if cerr != nil {
			err = fmt.Errorf("decode: exchange %d: %w", m.Exchange, cerr)
			break
		}
		count(s.Feed(chunk))
		if request != nil {
			request.feed(chunk)
		}
	}
	count(s.Close())
	call := s.Call()
	m.Protocol, m.Codec, m.Service, m.RPC = string(call.Protocol), call.Codec, call.Service, call.RPC
	m.Code, _ = s.Status()
	if request != nil && err == nil {
		m.Thread = threadOf(src.Profile(), request.close())
	}
	return m, err
}

// Find is FindConversations for the one that an exchange is a piece
// of, if it is one: stored summaries tell what else to look at. What they say is
// checked when the conversation is decoded.
func Find(ctx context.Context, src captures.Capture, id int64) (*Set, error) {
	c := &Set{threads: newThreads(src.Profile())}
	rec, err := src.Exchange(ctx, id)
	if err != nil {
		return c, fmt.Errorf("decode: exchange %d: %w", id, err)
	}
	if !IsPiece(c.profile, decode.Classify(rec)) {
		return c, nil
	}
	store, ok := src.(captures.SummaryStore)
	if !ok {
		return FindAll(ctx, src)
	}
	ex, err := decodeRequest(ctx, src, rec)
	if err != nil {
		return c, err
	}
	thread := threadOf(c.profile, ex)
	if thread == "" {
		return c, nil
	}
	pieces, upTo, err := store.Thread(ctx, thread, summaryVersion(src.Profile()))
	if err != nil {
		return c, fmt.Errorf("decode: exchange %d: %w", id, err)
	}
	if id <= upTo && !slices.ContainsFunc(pieces, func(p captures.Summary) bool { return p.Exchange == id }) {
		upTo = math.MinInt64 // its own summary is wrong: others may be
	}
	for i := range pieces {
		p := &pieces[i]
		if p.Exchange > upTo {
			break
		}
		call := callOf(p)
		if p.Exchange == id {
			call = ex.Call
		}
		c.addCall(p.Exchange, call, thread)
		c.fromSummaries = true
	}
	return c, c.find(ctx, src, store.ExchangesAfter(ctx, upTo))
}
