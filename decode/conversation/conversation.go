// Package conversation reassembles bidirectional streams that clients split across several calls, for example
// because HTTP/2 was not available. Exchanges go in, and one Conversation per stream comes out: a
// decode.Exchange, with the origin of each frame and with anomalies such as missing messages. A profile
// describes how a service splits its streams.
//
//	set, err := conversation.FindAll(ctx, capture)
//	if head := set.Head(id); head != 0 {
//		c, err := set.Decode(ctx, capture, head, decode.Options{})
//	}
//
// A stream is split into heads, calls whose responses carry the server's messages, and appends, calls that carry
// one message of the client each. A request id identifies the stream. Join sorts the messages of both directions
// by their numbers and removes hex, base64 and gzip around them.
//
// Two functions need no whole stream: RebuildAppend encodes a piece with another id or message for a replay, and
// ListExchanges lists a capture from stored summaries. EachCall and EachWhole visit each stream of a capture
// once, at its first call. The commands, package transcript, diff and replay use this package.
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

// A Set lists the split streams of a capture, i.e. bidirectional streams that were spread over several calls, with
// the exchanges that each consists of.
type Set struct {
	// threads has the split streams, by request id and by exchange.
	threads

	// fromSummaries means that the calls of the streams were found in stored summaries, which may be
	// outdated.
	fromSummaries bool
}

// threads finds split streams (streams spread over several calls) by request id and by exchange.
type threads struct {
	// profile describes how the service splits streams over calls.
	profile *profile.Profile

	// list has the split streams in the order of their first call. A split stream is one stream whose messages were
	// spread over several calls.
	list []*splitStream

	// byName finds a split stream by its request id, which all of its calls contain.
	byName map[string]*splitStream

	// byPart finds a split stream by the number of each exchange (one recorded call) that belongs to it.
	byPart map[int64]*splitStream
}

// A splitStream lists the exchanges that share a request id and together form one bidirectional stream. All its
// heads are calls of the same method.
type splitStream struct {
	// id is the request id that all calls of the stream share.
	id string

	// service and rpc name the bidirectional method; "" before a head was found.
	service, rpc string

	// heads are the numbers of the exchanges whose responses carry the server's messages, appends those that carry
	// one client message each.
	heads, appends []int64
}

// newThreads returns an empty threads for a profile.
func newThreads(p *profile.Profile) threads {
	return threads{profile: p, byName: map[string]*splitStream{}, byPart: map[int64]*splitStream{}}
}

// threadOf returns the request id in the request of ex, by which the calls of a split stream are recognised. It
// returns "" if ex is not such a call, or has no id.
func threadOf(p *profile.Profile, ex *decode.Exchange) string {
	switch h := headOf(p, ex.Call); {
	case h != nil:
		return textAt(requestOf(ex), h.ID)
	case isAppend(p, ex.Call):
		return textAt(requestOf(ex), p.Split.Append.ID)
	}
	return ""
}

// addPiece adds ex to the stream with its request id. It ignores exchanges that are not calls of a split stream or
// have no request id, and heads (calls with the server's messages) of another method than the stream's first one.
func (t *threads) addPiece(ex *decode.Exchange) { t.addCall(ex.ID, ex.Call, threadOf(t.profile, ex)) }

// addCall is addPiece for an exchange given by its number, its call and its request id.
func (t *threads) addCall(number int64, call decode.Call, id string) {
	h := headOf(t.profile, call)
	if id == "" || h == nil && !isAppend(t.profile, call) {
		return
	}
	// A head without appends may be an ordinary call, so Head checks for both.

	// The first piece with a request id creates the stream.
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

	// All heads of a stream must be of one method.
	rpc := Joined(t.profile, call).RPC
	if th.rpc == "" {
		th.service, th.rpc = call.Service, rpc
	}
	if th.service == call.Service && th.rpc == rpc {
		th.heads = append(th.heads, number)
		t.byPart[number] = th
	}
}

// FindAll finds all streams of a capture that were split over several calls.
//
// Shape: only exchanges whose method can be part of a split stream are read, and only the first message
// of their requests.
//
// Limits: the ids of the calls are kept in memory, but not their bodies.
//
// Errors: if src cannot be read; the result then has the streams found before.
func FindAll(ctx context.Context, src captures.Capture) (*Set, error) {
	c := &Set{threads: newThreads(src.Profile())}
	return c, c.find(ctx, src, src.Exchanges(ctx))
}

// find decodes the requests among the given exchanges and adds those that are calls of split streams. It continues
// after a damaged exchange and returns the first damage.
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

// decodeRequest decodes the first message of a request.
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

// A requestReader decodes the first message of a request while chunks arrive. It does not decode messages nested
// inside its fields.
type requestReader struct {
	// s decodes the exchange (one recorded call) from its chunks.
	s *decode.Stream

	// ex has the exchange's metadata and, once its first message is complete, that message.
	ex *decode.Exchange
}

// newRequestReader returns a requestReader for an exchange.
func newRequestReader(p *profile.Profile, rec *captures.Exchange) *requestReader {
	s := decode.NewStream(rec, decode.Options{NoInner: true, Profile: p})
	return &requestReader{s, &decode.Exchange{Exchange: *rec, Call: s.Call(), Profile: p}}
}

// feed processes the next chunk and reports whether the message is complete.
func (r *requestReader) feed(chunk captures.Chunk) bool {
	if chunk.Dir == captures.Up && len(r.ex.Frames) == 0 {
		r.ex.Frames = r.s.Feed(chunk)
	}
	return len(r.ex.Frames) > 0
}

// close ends the request, and returns the exchange with the request's first message, if there is one.
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

// Head returns the number of the exchange that identifies the conversation to which exchange id belongs: its first
// head, i.e. the first call with the server's messages. It returns 0 if id does not belong to a conversation.
func (c *Set) Head(id int64) int64 {
	if th := c.byPart[id]; th != nil && len(th.heads) > 0 && len(th.appends) > 0 {
		return th.heads[0]
	}
	return 0
}

// parts returns the numbers of the exchanges of the conversation that head identifies: heads (calls with the
// server's messages) before appends (calls with a client message), each in the order of their beginning. It returns
// nil if head does not identify a conversation.
func (c *Set) parts(head int64) []int64 {
	if c.Head(head) != head || head == 0 {
		return nil
	}
	th := c.byPart[head]
	return append(append([]int64{}, th.heads...), th.appends...)
}

// errNoConversation is wrapped if an exchange is not the first head of a conversation, i.e. does not identify one.
var errNoConversation = errors.New("no conversation begins with this exchange")

// Decode decodes and joins the calls of the conversation whose first head (call with the server's messages) is
// exchange head.
//
// Limits: MaxTotal and MaxNodes of the options apply to all pieces together.
//
// Errors: errNoConversation, or src cannot be read. Everything that cannot be decoded is in Exchange.Err.
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
		// Reduce the limits by what this piece used.
		for i := range ex.Frames {
			left.MaxTotal = max(1, left.MaxTotal-int64(len(ex.Frames[i].Data)))
			if t := ex.Frames[i].Tree; t != nil {
				left.MaxNodes = max(1, left.MaxNodes-len(t.Nodes))
			}
		}
		parts = append(parts, ex)
	}

	// If the summaries were outdated, find the pieces again from the exchanges themselves.
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
		joined[0].Err = errors.Join(joined[0].Err, fmt.Errorf("decode: conversation %d: %d of its exchanges are not decoded, because the conversation exceeds %d bytes or %d fields", head, n, bounds.MaxTotal, bounds.MaxNodes))
	}
	return joined[0], nil
}

// Decode decodes the conversation whose first head (call with the server's messages) is exchange id. It returns nil
// without an error if id is not one. It searches src only if id may be a head.
func Decode(ctx context.Context, src captures.Source, id int64, o decode.Options) (*Conversation, error) {
	capture, ok := src.(captures.Capture)
	if !ok {
		return nil, nil
	}

	// Most exchanges are not heads, which their record shows.
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

// DropJoined removes frames from ex, one of several calls that together form a conversation: those that are contained
// unchanged in the exchange that is joined from all calls, so that they are not counted twice. Frames remain if the
// messages of the conversation were fields inside them.
func DropJoined(ex *decode.Exchange) {
	if h := headOf(ex.Profile, ex.Call); h != nil && h.Data == 0 {
		ex.Frames = slices.DeleteFunc(ex.Frames, func(f decode.Frame) bool { return f.Dir == captures.Down })
	}
}

// Joined returns c with the name of the bidirectional method if c is a head, i.e. a call that carries the server's
// messages of that method. Other calls are returned unchanged.
func Joined(p *profile.Profile, c decode.Call) decode.Call {
	if h := headOf(p, c); h != nil {
		c.RPC = strings.TrimSuffix(c.RPC, h.Suffix)
	}
	return c
}
