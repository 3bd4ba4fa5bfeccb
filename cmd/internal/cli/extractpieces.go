package cli

import (
	"slices"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/conversation"
)

const (
	maxFollowedPieces = 4096     // of conversations in pieces that are held
	maxFollowedBytes  = 64 << 20 // of all of them together
)

// pieces holds the exchanges that are pieces of conversations while they are
// followed: those that go on, and those that have ended, as they are joined with
// what is still to come.
type pieces struct {
	list  []*decode.Exchange // in the order of their beginning
	heads map[int64]*tail    // by what a conversation goes by: where its answer is printed
}

// add takes an exchange, and lets go of the oldest where there are too many.
func (p *pieces) add(ex *decode.Exchange) {
	p.list = append(p.list, ex)
	if len(p.list) > maxFollowedPieces {
		p.list = slices.Delete(p.list, 0, 1)
	}
	bytes := int64(0)
	for i := len(p.list) - 1; i >= 0; i-- {
		if bytes += p.list[i].BytesUp + p.list[i].BytesDown; bytes > maxFollowedBytes && i < len(p.list)-1 {
			p.list = slices.Delete(p.list, 0, i+1)
			break
		}
	}
}

// of is the conversation that exchange id is a piece of, as far as it is known, or
// nil.
func (p *pieces) of(id int64) *conversation.Conversation {
	for _, c := range conversation.Join(p.list, decode.Options{}) {
		if slices.Contains(c.Heads, id) || slices.Contains(c.Appends, id) {
			return c
		}
	}
	return nil
}

// isPiece reports whether an exchange is to be joined with others.
func (f *follower) isPiece(ex *captures.Exchange) bool {
	return !f.parts && conversation.IsPiece(decode.Classify(ex))
}

// whole is what is scored for t: itself, or the conversation that it is the
// server's half of. state is where it was printed. A nil exchange is a message of
// the client's, which is in the conversation that is printed elsewhere.
func (f *follower) whole(t *tail) (ex *decode.Exchange, state *tail) {
	if !t.piece {
		return t.ex, t
	}
	c := f.pieces.of(t.ex.ID)
	if c == nil {
		return t.ex, t
	}
	if slices.Contains(c.Appends, t.ex.ID) {
		if f.only == t.ex.ID {
			return t.ex, t
		}
		for _, id := range c.Heads {
			if head := f.tails[id]; head != nil {
				head.dirty = true
			}
		}
		return nil, t
	}
	if f.pieces.heads[c.ID] == nil {
		f.pieces.heads[c.ID] = t
	}
	return c.Exchange, f.pieces.heads[c.ID]
}
