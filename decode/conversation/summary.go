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

// codeVersion must be incremented with every change, also of package decode, that yields a different summary for the same
// exchange. Older summaries are then derived again.
const codeVersion = 2

// summaryVersion returns the version of summaries that are derived with a profile. It depends on how the profile
// splits streams.
func summaryVersion(p *profile.Profile) int {
	var split profile.Split
	if p != nil {
		split = p.Split
	}
	h := fnv.New32a()
	a := split.Append
	fmt.Fprintf(h, "%q %d %d %d %d\n", a.RPC, a.Text, a.Binary, a.ID, a.Seq)
	for _, head := range split.Heads {
		fmt.Fprintf(h, "%q %d %d %d %d\n", head.Suffix, head.ID, head.Seq, head.Data, head.EOF)
	}
	return codeVersion<<captures.ProfileBits | int(h.Sum32()&(1<<captures.ProfileBits-1))
}

// A Listed is one exchange in a listing.
//
// Shape: of captures.Exchange, only the fields of captures.Listed are set.
type Listed struct {
	// Exchange is the exchange's metadata, of which only the fields that captures.Listed names are set.
	*captures.Exchange

	// Call adds the protocol, the codec and the method that were called.
	decode.Call

	// Code is the status code of the call, such as "ok" or "not_found".
	Code string

	// FramesUp and FramesDown are the numbers of frames by direction.
	FramesUp, FramesDown int

	// Joined is the number of the first head of the conversation to which the exchange belongs, or 0.
	Joined int64

	// Parts are the numbers of all exchanges of the conversation, if this exchange is its first head.
	Parts []int64
}

// A List has the exchanges of a capture with their conversations.
type List struct {
	// Exchanges are ordered by number.
	Exchanges []Listed

	// derived are newly computed summaries that the capture does not store yet.
	derived []captures.Summary

	// upTo is the exchange number up to which all exchanges have a summary.
	upTo int64
}

// ListExchanges lists the exchanges of a capture.
//
// Shape: a stored summary is used without verification. An exchange without one is decoded. If its
// chunks cannot be read, the result has the part decoded before.
//
// Errors: the errors of all exchanges that could not be read; the List has the other exchanges.
func ListExchanges(ctx context.Context, store captures.SummaryStore) (*List, error) {
	l := NewLister(store)
	err := l.Update(ctx, nil)
	list := &List{derived: l.derived, upTo: l.upTo, Exchanges: make([]Listed, len(l.exchanges))}
	for i, ex := range l.exchanges {
		list.Exchanges[i] = *ex
	}
	return list, err
}

// One decodes exchange id, which must have ended, and returns it as a listing contains it, but without Joined and
// Parts.
//
// Errors: errors of the source, with what could be read.
func One(ctx context.Context, src captures.Source, id int64) (Listed, error) {
	rec, err := src.Exchange(ctx, id)
	if err != nil {
		return Listed{}, err
	}
	m, err := summarize(ctx, src, captures.Listed{Exchange: rec})
	return Listed{Exchange: rec, Call: callOf(&m), Code: m.Code, FramesUp: m.FramesUp, FramesDown: m.FramesDown}, err
}

// ListStored yields the exchanges of a capture without decoding. Exchanges without a stored summary have no code
// and no frames.
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

// Save stores the summaries that ListExchanges derived, so that the next listing is faster.
//
// Errors: those of captures.SummaryStore. A listing works without stored summaries, only more slowly.
func (l *List) Save(ctx context.Context, store captures.SummaryStore) error {
	if len(l.derived) == 0 {
		return nil
	}
	return store.PutSummaries(ctx, l.derived, l.upTo)
}

// Index derives and stores the summaries that a capture lacks.
//
// Limits: one exchange's incomplete frames and one summary per exchange are in memory.
//
// Errors: errors of the store. If ctx ends early, the summaries so far are stored.
func Index(ctx context.Context, store captures.SummaryStore) error {
	l, err := ListExchanges(ctx, store)
	return errors.Join(err, l.Save(context.WithoutCancel(ctx), store))
}

// callOf returns the protocol, codec, service and method in a stored summary.
func callOf(m *captures.Summary) decode.Call {
	return decode.Call{Protocol: decode.Protocol(m.Protocol), Codec: m.Codec, Service: m.Service, RPC: m.RPC}
}

// summarize derives the summary of an exchange, up to the first chunk that cannot be read.
func summarize(ctx context.Context, src captures.Source, l captures.Listed) (captures.Summary, error) {
	return summarizeFrom(ctx, src, l, src.Exchange)
}

// summarizeFrom is summarize with record as the function that returns the metadata of an exchange.
func summarizeFrom(ctx context.Context, src captures.Source, l captures.Listed, record func(context.Context, int64) (*captures.Exchange, error)) (captures.Summary, error) {
	m := captures.Summary{Exchange: l.Exchange.ID, Version: summaryVersion(src.Profile()), ExchangeHash: l.ExchangeHash}
	rec, err := record(ctx, m.Exchange)
	if err != nil {
		return m, fmt.Errorf("decode: exchange %d: %w", m.Exchange, err)
	}

	// Counting frames needs no trees, only the request of a piece does.
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

	// One pass over the chunks counts frames and finds the request id.
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

// Find is FindAll for only the split stream to which exchange id belongs. Stored summaries name its other calls, so
// few exchanges are read. Set.Decode verifies the summaries.
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

	// The request id leads to the summaries of the other pieces.
	thread := threadOf(c.profile, ex)
	if thread == "" {
		return c, nil
	}
	pieces, upTo, err := store.Thread(ctx, thread, summaryVersion(src.Profile()))
	if err != nil {
		return c, fmt.Errorf("decode: exchange %d: %w", id, err)
	}
	if id <= upTo && !slices.ContainsFunc(pieces, func(p captures.Summary) bool { return p.Exchange == id }) {
		// The exchange's own summary is wrong, so do not trust the others either.
		upTo = math.MinInt64
	}

	// Summaries are complete up to exchange upTo. Search behind it without them.
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
