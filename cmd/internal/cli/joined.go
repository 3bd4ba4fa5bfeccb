package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"unwire/captures"
	"unwire/cmd/internal/term"
	"unwire/decode"
)

// A found exchange is what an address names, decoded.
type found struct {
	*decode.Exchange
	joined *decode.Conversation // what Exchange is of; nil where it is one exchange alone
	head   int64                // of the conversation that it is a piece of; 0 for none
}

// exchangeAt decodes the exchange that an address names; where a conversation
// goes by it, that, unless the address says part.
func exchangeAt(ctx context.Context, store *captures.Store, addr address) (found, error) {
	rec, err := store.Exchange(ctx, addr.Exchange)
	if err != nil {
		return found{}, err
	}
	f := found{}
	if decode.IsPiece(decode.Classify(rec)) {
		all, err := decode.FindConversation(ctx, store, rec.ID)
		if errors.Is(err, captures.ErrDamaged) { // the exchange alone is better than nothing
			f.Exchange, _ = decode.Decode(ctx, store, rec.ID, decode.Options{})
		}
		if err != nil {
			return f, err
		}
		f.head = all.Head(rec.ID)
		if f.head == rec.ID && !addr.Part {
			f.joined, err = all.Decode(ctx, store, rec.ID, decode.Options{})
			if err != nil {
				return f, err
			}
			f.Exchange = f.joined.Exchange
			return f, nil
		}
	}
	f.Exchange, err = decode.Decode(ctx, store, rec.ID, decode.Options{})
	return f, err
}

// remarkEmpty reports that a capture holds no exchanges: otherwise "nothing found"
// would read as "nothing wrong".
func (a *app) remarkEmpty(ctx context.Context, store *captures.Store) {
	for range store.Exchanges(ctx) {
		return
	}
	a.say("unwire: warning: %s holds no exchanges", term.Clean(store.Path()))
}

// eachExchange decodes the exchanges of a capture, or the one that an address
// such as F.uwc#7 names. Of a conversation in pieces there is first all of it;
// piece tells the exchange whose place it took.
func eachExchange(ctx context.Context, name string, do func(ex *decode.Exchange, piece bool) error) error {
	addr := parseAddress(name)
	store, err := openCapture(addr.File)
	if err != nil {
		return err
	}
	defer store.Close()
	if addr.Exchange != 0 {
		one, err := decode.FindConversation(ctx, store, addr.Exchange)
		if err != nil {
			return err
		}
		return eachOf(ctx, store, one, addr, decode.Options{}, do)
	}
	all, damage := decode.FindConversations(ctx, store)
	if damage != nil && !errors.Is(damage, captures.ErrDamaged) {
		return damage
	}
	for rec, err := range store.Exchanges(ctx) {
		if err == nil {
			err = eachOf(ctx, store, all, address{Exchange: rec.ID}, decode.Options{}, do)
		}
		if err != nil && !errors.Is(err, captures.ErrDamaged) {
			return err
		}
		damage = cmp.Or(damage, err)
	}
	return damage
}

// eachWhole decodes the exchanges of a capture, a conversation in pieces as
// one, in the place of the exchange that it goes by. With parts each is alone.
// In a damaged capture, do gets what can be read; the damage is the error.
func eachWhole(ctx context.Context, store *captures.Store, parts bool, do func(ex *decode.Exchange) error) error {
	all := &decode.Conversations{}
	var damage error
	if !parts {
		if all, damage = decode.FindConversations(ctx, store); damage != nil && !errors.Is(damage, captures.ErrDamaged) {
			return damage
		}
	}
	for rec, err := range store.Exchanges(ctx) {
		if err != nil {
			return cmp.Or(damage, err) // it is the last
		}
		var ex *decode.Exchange
		switch head := all.Head(rec.ID); head {
		case 0:
			ex, err = decode.Decode(ctx, store, rec.ID, decode.Options{})
		case rec.ID:
			var c *decode.Conversation
			if c, err = all.Decode(ctx, store, head, decode.Options{}); err == nil {
				ex = c.Exchange
			}
		default:
			continue // its message is in the conversation
		}
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

// eachOf is eachExchange for one exchange of a store. Of a damaged one do gets
// what is there of it, and then the damage is the error.
func eachOf(ctx context.Context, store *captures.Store, all *decode.Conversations, addr address, o decode.Options, do func(*decode.Exchange, bool) error) error {
	head := all.Head(addr.Exchange)
	if head == addr.Exchange && !addr.Part {
		c, err := all.Decode(ctx, store, head, o)
		if err != nil {
			return err
		}
		if err := do(c.Exchange, false); err != nil {
			return err
		}
	}
	ex, damage := decode.Decode(ctx, store, addr.Exchange, o)
	if damage != nil {
		if ex == nil || !errors.Is(damage, captures.ErrDamaged) {
			return damage
		}
		for i := range ex.Frames {
			f := &ex.Frames[i]
			f.Partial = f.Partial || !f.Framed // nothing tells where a body was to end
		}
	}
	if err := do(ex, head == addr.Exchange && !addr.Part); err != nil {
		return err
	}
	return damage
}

// printJoined says what a conversation was put together from.
func (a *app) printJoined(w io.Writer, c *decode.Conversation) {
	fmt.Fprintf(w, "%s\n\n", a.out.Dim(fmt.Sprintf("joined by request id %s: the server's half from %s, the client's from %s; --parts shows the call alone",
		term.Clean(c.RequestID), idSpan(c.Heads), idSpan(c.Appends))))
}

// idSpan names exchanges shortly.
func idSpan(ids []int64) string {
	const most = 6
	var parts []string
	for i, id := range ids {
		if i == most {
			parts = append(parts, fmt.Sprintf("… (%d)", len(ids)))
			break
		}
		parts = append(parts, "#"+strconv.FormatInt(id, 10))
	}
	return strings.Join(parts, " ")
}

// anomaliesOf are what is remarked on a frame of a conversation, in words.
func anomaliesOf(c *decode.Conversation, f *decode.Frame) (before, after []string) {
	for _, an := range c.Anomalies {
		switch {
		case an.Dir != f.Dir || an.Seq != f.Seq:
		case an.Kind == decode.Gap:
			before = append(before, an.String())
		default:
			after = append(after, an.String())
		}
	}
	return before, after
}

// originOf is where a frame of a conversation comes from.
func originOf(c *decode.Conversation, f *decode.Frame) decode.Origin {
	i := slices.IndexFunc(c.Frames, func(g decode.Frame) bool { return g.Dir == f.Dir && g.Seq == f.Seq })
	return c.Origins[i]
}
