// Package conversation finds the bidirectional streams of a capture that were carried in
// pieces, as several calls, and puts each together: exchanges go in, and one
// decode.Exchange comes out, with what its frames do not show. How a service splits a
// stream is data: a profile.
//
// A Set has the split streams of a capture. Join puts the messages of the pieces in order,
// and notes where each came from. An anomaly is what is wrong, such as a message that is
// missing. A piece is one call's part: the message that it carries is unwrapped from hex,
// gzip or base64.
//
// Two uses need no whole stream: Rebuild writes a piece again with another id or message,
// for a replay, and summaries list the exchanges of a capture from what is stored of each.
// A walk over a capture visits each stream once, under its first call.
package conversation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"unwire/captures"
	"unwire/captures/profile"
	"unwire/decode"
)

// A Set says which exchanges of a capture are pieces of what.
type Set struct {
	threads
	fromSummaries bool // a piece may be none
}

// threads are pieces by request id.
type threads struct {
	profile *profile.Profile
	list    []*splitStream
	byName  map[string]*splitStream
	byPart  map[int64]*splitStream
}

// A splitStream is the pieces with one request id, and of their heads those of one method.
type splitStream struct {
	id             string
	service, rpc   string // of the bidirectional method; "" before a head is known
	heads, appends []int64
}

func newThreads(p *profile.Profile) threads {
	return threads{profile: p, byName: map[string]*splitStream{}, byPart: map[int64]*splitStream{}}
}

// threadOf is the request id of a piece; "" where it does not tell, and for
// what is no piece.
func threadOf(p *profile.Profile, ex *decode.Exchange) string {
	switch h := headOf(p, ex.Call); {
	case h != nil:
		return textAt(requestOf(ex), h.ID)
	case isAppend(p, ex.Call):
		return textAt(requestOf(ex), p.Split.Append.ID)
	}
	return ""
}

// addPiece enters an exchange. One that is no piece, or does not tell of what, is
// left out, as is a head of another method than the first one of its id.
func (t *threads) addPiece(ex *decode.Exchange) { t.addCall(ex.ID, ex.Call, threadOf(t.profile, ex)) }

// addCall is addPiece for the exchange number, of a call, with a request id.
func (t *threads) addCall(number int64, call decode.Call, id string) {
	h := headOf(t.profile, call)
	if id == "" || h == nil && !isAppend(t.profile, call) {
		return
	}
	th := t.byName[id]
	if th == nil {
		th = &splitStream{id: strings.Clone(id)}
		t.byName[id] = th
		t.list = append(t.list, th)
	}
	if h == nil {
		th.appends = append(th.appends, number)
		t.byPart[number] = th
		return
	}
	rpc := Joined(t.profile, call).RPC
	if th.rpc == "" {
		th.service, th.rpc = call.Service, rpc
	}
	if th.service == call.Service && th.rpc == rpc {
		th.heads = append(th.heads, number)
		t.byPart[number] = th
	}
}

// FindAll looks through a capture for conversations in pieces.
//
// Shape: only exchanges that are pieces by their names are read, and of heads
// no more than the request.
// Limits: it holds the ids of the pieces, none of their bodies.
// Errors: where src cannot be read, with what was found by then.
func FindAll(ctx context.Context, src captures.Capture) (*Set, error) {
	c := &Set{threads: newThreads(src.Profile())}
	return c, c.find(ctx, src, src.Exchanges(ctx))
}

// find enters the pieces among exchanges of src, those behind a damaged one, too.
func (c *Set) find(ctx context.Context, src captures.Source, among iter.Seq2[*captures.Exchange, error]) error {
	var damage error
	for rec, err := range among {
		if err != nil {
			return cmp.Or(damage, fmt.Errorf("decode: %w", err))
		}
		if !IsPiece(c.profile, decode.Classify(rec)) {
			continue
		}
		ex, err := decodeRequest(ctx, src, rec)
		switch {
		case err == nil:
			c.addPiece(ex)
		case !errors.Is(err, captures.ErrDamaged):
			return err
		case damage == nil:
			damage = err
		}
	}
	return damage
}

// decodeRequest decodes the request's first message.
func decodeRequest(ctx context.Context, src captures.Source, rec *captures.Exchange) (*decode.Exchange, error) {
	r := newRequestReader(src.Profile(), rec)
	for chunk, err := range src.Chunks(ctx, rec.ID, 0) {
		if err != nil {
			return nil, fmt.Errorf("decode: exchange %d: %w", rec.ID, err)
		}
		if r.feed(chunk) {
			return r.ex, nil
		}
	}
	return r.close(), nil
}

// A requestReader decodes the request's first message, and not what is inside
// its fields.
type requestReader struct {
	s  *decode.Stream
	ex *decode.Exchange
}

func newRequestReader(p *profile.Profile, rec *captures.Exchange) *requestReader {
	s := decode.NewStream(rec, decode.Options{NoInner: true, Profile: p})
	return &requestReader{s, &decode.Exchange{Exchange: *rec, Call: s.Call(), Profile: p}}
}

// feed takes the next chunk, and reports whether the message is there.
func (r *requestReader) feed(chunk captures.Chunk) bool {
	if chunk.Dir == captures.Up && len(r.ex.Frames) == 0 {
		r.ex.Frames = r.s.Feed(chunk)
	}
	return len(r.ex.Frames) > 0
}

// close returns the request with its message, if it has one.
func (r *requestReader) close() *decode.Exchange {
	if len(r.ex.Frames) > 0 {
		return r.ex
	}
	for _, f := range r.s.Close() {
		if f.Up() {
			r.ex.Frames = append(r.ex.Frames, f)
		}
	}
	return r.ex
}

// Head returns the exchange that identifies a conversation: the first head of the
// one that exchange id is a piece of; 0 if it is none of any.
func (c *Set) Head(id int64) int64 {
	if th := c.byPart[id]; th != nil && len(th.heads) > 0 && len(th.appends) > 0 {
		return th.heads[0]
	}
	return 0
}

// parts returns the exchanges of the conversation whose head is given: its heads
// first, each in the order of their beginning; nil if there is none.
func (c *Set) parts(head int64) []int64 {
	if c.Head(head) != head || head == 0 {
		return nil
	}
	th := c.byPart[head]
	return append(append([]int64{}, th.heads...), th.appends...)
}

// errNoConversation is wrapped where an exchange is the head of none.
var errNoConversation = errors.New("no conversation goes by this exchange")

// Decode reads the pieces of the conversation whose head is given, and joins them.
//
// Limits: Options' MaxTotal and MaxNodes hold for all pieces together.
// Errors: ErrNoConversation; where src cannot be read. What cannot be decoded is
// in Exchange.Err.
func (c *Set) Decode(ctx context.Context, src captures.Source, head int64, o decode.Options) (*Conversation, error) {
	o.NoTrees, o.NoInner = false, false
	o.Profile = src.Profile()
	bounds := o.Bounded()
	left := bounds
	var parts []*decode.Exchange
	for _, id := range c.parts(head) {
		ex, err := decode.Decode(ctx, src, id, left)
		if err != nil {
			return nil, err
		}
		for i := range ex.Frames {
			left.MaxTotal = max(1, left.MaxTotal-int64(len(ex.Frames[i].Data)))
			if t := ex.Frames[i].Tree; t != nil {
				left.MaxNodes = max(1, left.MaxNodes-len(t.Nodes))
			}
		}
		parts = append(parts, ex)
	}
	joined := Join(parts, bounds)
	if all, ok := src.(captures.Capture); ok && c.fromSummaries && (len(joined) != 1 || joined[0].ID != head || len(joined[0].Heads)+len(joined[0].Appends) < len(parts)) {
		found, err := FindAll(ctx, all)
		if err != nil {
			return nil, err
		}
		return found.Decode(ctx, src, head, o)
	}
	if len(joined) == 0 {
		return nil, fmt.Errorf("decode: exchange %d: %w", head, errNoConversation)
	}
	joined[0].LoadChoices(ctx, src)
	if n := len(parts) - len(joined[0].Heads) - len(joined[0].Appends); n > 0 {
		joined[0].Err = errors.Join(joined[0].Err, fmt.Errorf("decode: conversation %d: %d of its exchanges are beyond the bounds of %d bytes and %d nodes", head, n, bounds.MaxTotal, bounds.MaxNodes))
	}
	return joined[0], nil
}

// Decode is Decode where id is the head of a conversation, else it
// returns nil without an error. It looks through src only where id may be one.
func Decode(ctx context.Context, src captures.Source, id int64, o decode.Options) (*Conversation, error) {
	capture, ok := src.(captures.Capture)
	if !ok {
		return nil, nil
	}
	rec, err := src.Exchange(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("decode: exchange %d: %w", id, err)
	}
	if headOf(src.Profile(), decode.Classify(rec)) == nil {
		return nil, nil
	}
	all, err := Find(ctx, capture, id)
	if err != nil {
		return nil, err
	}
	if all.Head(id) != id {
		return nil, nil
	}
	return all.Decode(ctx, src, id, o)
}

// DropJoined removes from a piece the frames that its conversation has unchanged, so
// that they are not counted twice. The frames that carried others remain.
func DropJoined(ex *decode.Exchange) {
	if h := headOf(ex.Profile, ex.Call); h != nil && h.Data == 0 {
		ex.Frames = slices.DeleteFunc(ex.Frames, func(f decode.Frame) bool { return f.Dir == captures.Down })
	}
}

// Joined is the call that a head's call stands for: the bidirectional method.
func Joined(p *profile.Profile, c decode.Call) decode.Call {
	if h := headOf(p, c); h != nil {
		c.RPC = strings.TrimSuffix(c.RPC, h.Suffix)
	}
	return c
}
