package conversation

import (
	"cmp"
	"context"
	"errors"

	"unwire/captures"
	"unwire/decode"
)

// A Resolved exchange is what a number of a capture identifies: the conversation whose
// head it is, or else the exchange alone.
type Resolved struct {
	*decode.Exchange
	// Joined is the conversation that Exchange is of; nil for one exchange alone.
	Joined *Conversation
	// Head is the head of the conversation of which this exchange is a piece; 0 if it is
	// of none.
	Head int64
}

// Resolve decodes what the number id identifies, as o says; with part, the exchange alone.
//
// Errors: of a damaged capture, with what is readable of the exchange.
func Resolve(ctx context.Context, src captures.Capture, id int64, part bool, o decode.Options) (Resolved, error) {
	rec, err := src.Exchange(ctx, id)
	if err != nil {
		return Resolved{}, err
	}
	r := Resolved{}
	if IsPiece(src.Profile(), decode.Classify(rec)) {
		all, err := Find(ctx, src, rec.ID)
		if errors.Is(err, captures.ErrDamaged) {
			// The exchange alone is better than nothing.
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
	r.Exchange, err = decode.Decode(ctx, src, rec.ID, o)
	return r, err
}

// EachCall decodes the exchanges of a capture, or only the one with the number id if
// that is not 0. Of a conversation there is first all of it, unless id names an
// exchange and part says that it alone is wanted; joined tells the exchange whose
// place it took. They are decoded as o says.
//
// Errors: that of do, which ends it. In a damaged capture do gets what is readable;
// the damage is the error.
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

// eachCall is EachCall for one exchange, whose conversation is among c. Of a damaged
// one do gets what is there of it, and then the damage is the error.
func (c *Set) eachCall(ctx context.Context, src captures.Capture, id int64, part bool, o decode.Options, do func(ex *decode.Exchange, joined bool) error) error {
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
			// Nothing shows where a body was to end.
			f := &ex.Frames[i]
			f.Partial = f.Partial || !f.Framed
		}
	}
	if err := do(ex, joined); err != nil {
		return err
	}
	return damage
}

// EachWhole decodes the exchanges of a capture, a conversation as one, in the place
// of its head. With parts each exchange is alone.
//
// Errors: that of do, which ends it. In a damaged capture do gets what is readable;
// the damage is the error.
func EachWhole(ctx context.Context, src captures.Capture, parts bool, do func(ex *decode.Exchange) error) error {
	all := &Set{}
	var damage error
	if !parts {
		if all, damage = FindAll(ctx, src); damage != nil && !errors.Is(damage, captures.ErrDamaged) {
			return damage
		}
	}
	for rec, err := range src.Exchanges(ctx) {
		if err != nil {
			// Nothing follows an error.
			return cmp.Or(damage, err)
		}
		ex, err := all.whole(ctx, src, rec.ID)
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

// whole decodes the exchange id, or the conversation whose head it is; of another
// piece of a conversation it returns nil.
func (c *Set) whole(ctx context.Context, src captures.Capture, id int64) (*decode.Exchange, error) {
	switch c.Head(id) {
	case 0:
		return decode.Decode(ctx, src, id, decode.Options{})
	case id:
		whole, err := c.Decode(ctx, src, id, decode.Options{})
		if err != nil {
			return nil, err
		}
		return whole.Exchange, nil
	}
	return nil, nil
}
