package conversation

import (
	"cmp"
	"context"
	"errors"

	"unwire/captures"
	"unwire/decode"
)

// A Resolved is what an exchange number identifies: the conversation with that head, or else the exchange
// itself.
type Resolved struct {
	// Exchange is the joined conversation as an exchange, or the single exchange.
	*decode.Exchange

	// Joined is the conversation, or nil for a single exchange.
	Joined *Conversation

	// Head is the head of the conversation that the exchange is a piece of, or 0.
	Head int64
}

// Resolve decodes the conversation whose first head (call with the server's messages) is exchange id. If there is
// none, or if part is true, it decodes the exchange itself.
//
// Errors: errors of a damaged capture, with the readable part of the exchange.
func Resolve(ctx context.Context, src captures.Capture, id int64, part bool, o decode.Options) (Resolved, error) {
	rec, err := src.Exchange(ctx, id)
	if err != nil {
		return Resolved{}, err
	}
	r := Resolved{}
	if IsPiece(src.Profile(), decode.Classify(rec)) {
		// The piece may belong to a conversation.
		all, err := Find(ctx, src, rec.ID)
		if errors.Is(err, captures.ErrDamaged) {
			// A single exchange is better than nothing.
			r.Exchange, _ = decode.Decode(ctx, src, rec.ID, o)
		}
		if err != nil {
			return r, err
		}
		r.Head = all.Head(rec.ID)
		if r.Head == rec.ID && !part {
			if r.Joined, err = all.Decode(ctx, src, rec.ID, o); err != nil {
				return r, err
			}
			r.Exchange = r.Joined.Exchange
			return r, nil
		}
	}

	// An ordinary exchange, or a piece on its own.
	r.Exchange, err = decode.DecodeRecord(ctx, src, rec, o)
	return r, err
}

// EachCall decodes the exchanges of a capture, or only exchange id if that is not 0, and calls do for each. For
// the head of a conversation, do is called with the conversation first, and then with the head and joined set,
// unless part is true.
//
// Errors: the error of do, which ends EachCall. In a damaged capture, do is called with everything readable, and
// the damage is returned at the end.
func EachCall(ctx context.Context, src captures.Capture, id int64, part bool, o decode.Options, do func(ex *decode.Exchange, joined bool) error) error {
	if id != 0 {
		one, err := Find(ctx, src, id)
		if err != nil {
			return err
		}
		return one.eachCall(ctx, src, id, part, o, do)
	}
	all, damage := FindAll(ctx, src)
	if damage != nil && !errors.Is(damage, captures.ErrDamaged) {
		return damage
	}
	for rec, err := range src.Exchanges(ctx) {
		if err == nil {
			err = all.eachCall(ctx, src, rec.ID, false, o, do)
		}
		if err != nil && !errors.Is(err, captures.ErrDamaged) {
			return err
		}
		damage = cmp.Or(damage, err)
	}
	return damage
}

// eachCall is EachCall for one exchange. If c lists a conversation with it as first head, do is called for the
// conversation too. For a damaged exchange it calls do with the readable part, and returns the error.
func (c *Set) eachCall(ctx context.Context, src captures.Capture, id int64, part bool, o decode.Options, do func(ex *decode.Exchange, joined bool) error) error {
	// The conversation is visited before its first head.
	joined := c.Head(id) == id && !part
	if joined {
		whole, err := c.Decode(ctx, src, id, o)
		if err != nil {
			return err
		}
		if err := do(whole.Exchange, false); err != nil {
			return err
		}
	}

	ex, damage := decode.Decode(ctx, src, id, o)
	if damage != nil {
		if ex == nil || !errors.Is(damage, captures.ErrDamaged) {
			return damage
		}
		for i := range ex.Frames {
			// The recorded end of an unframed body is unknown.
			f := &ex.Frames[i]
			f.Partial = f.Partial || !f.Framed
		}
	}

	if err := do(ex, joined); err != nil {
		return err
	}
	return damage
}

// EachWhole decodes the exchanges of a capture and calls do for each. A conversation counts as one exchange, in
// place of its head. If parts is true, each piece counts on its own.
//
// Errors: as EachCall.
func EachWhole(ctx context.Context, src captures.Capture, parts bool, do func(ex *decode.Exchange) error) error {
	all := &Set{}
	var damage error
	if !parts {
		if all, damage = FindAll(ctx, src); damage != nil && !errors.Is(damage, captures.ErrDamaged) {
			return damage
		}
	}
	o := decode.Options{NoChoices: !decode.HasChoices(ctx, src)}
	for rec, err := range src.Exchanges(ctx) {
		if err != nil {
			// Nothing follows an error.
			return cmp.Or(damage, err)
		}

		// Other pieces of a conversation yield nil and are skipped.
		ex, err := all.whole(ctx, src, rec, o)
		if err != nil && !errors.Is(err, captures.ErrDamaged) {
			return err
		}
		damage = cmp.Or(damage, err)
		if ex == nil {
			continue
		}
		if err := do(ex); err != nil {
			return err
		}
	}
	return damage
}

// whole decodes an exchange, or the conversation with that head. It returns nil for other pieces of a
// conversation.
func (c *Set) whole(ctx context.Context, src captures.Capture, rec *captures.Exchange, o decode.Options) (*decode.Exchange, error) {
	switch c.Head(rec.ID) {
	case 0:
		return decode.DecodeRecord(ctx, src, rec, o)
	case rec.ID:
		whole, err := c.Decode(ctx, src, rec.ID, o)
		if err != nil {
			return nil, err
		}
		return whole.Exchange, nil
	}
	return nil, nil
}
