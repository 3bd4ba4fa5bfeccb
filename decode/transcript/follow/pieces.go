package follow

import (
	"slices"

	"unwire/captures/profile"
	"unwire/decode"
	"unwire/decode/conversation"
)

// Bounds of the exchanges that are held as pieces of conversations.
const (
	maxPieces     = 4096
	maxPieceBytes = 64 << 20
)

// pieces holds the exchanges that are pieces of conversations while they are
// followed: those that go on, and those that have ended, as they are joined with
// what is still to come.
type pieces struct {
	profile *profile.Profile

	// list is in the order of the exchanges' beginning.
	list []*decode.Exchange

	// heads are by what a conversation goes by: where its answer is told.
	heads map[int64]*running
}

// addExchange takes an exchange, and lets go of the oldest where there are too many.
func (p *pieces) addExchange(ex *decode.Exchange) {
	p.list = append(p.list, ex)
	if len(p.list) > maxPieces {
		p.list = slices.Delete(p.list, 0, 1)
	}
	bytes := int64(0)
	for i := len(p.list) - 1; i >= 0; i-- {
		if bytes += p.list[i].BytesUp + p.list[i].BytesDown; bytes > maxPieceBytes && i < len(p.list)-1 {
			p.list = slices.Delete(p.list, 0, i+1)
			break
		}
	}
}

// conversationOf is the conversation that exchange id is a piece of, as far as it is
// known, or nil.
func (p *pieces) conversationOf(id int64) *conversation.Conversation {
	for _, c := range conversation.Join(p.list, decode.Options{Profile: p.profile}) {
		if slices.Contains(c.Heads, id) || slices.Contains(c.Appends, id) {
			return c
		}
	}
	return nil
}

// whole is what is scored for r: itself, or the conversation that it is the server's
// half of. told is where it is noted what was told of the answer. A nil exchange is a
// message of the client's, which is in the conversation that is told elsewhere.
func (f *Follower) whole(r *running) (ex *decode.Exchange, told *running) {
	if !r.piece {
		return r.ex, r
	}
	c := f.pieces.conversationOf(r.ex.ID)
	if c == nil {
		return r.ex, r
	}
	if slices.Contains(c.Appends, r.ex.ID) {
		if f.o.Only == r.ex.ID {
			return r.ex, r
		}
		for _, id := range c.Heads {
			if head := f.running[id]; head != nil {
				head.unscored = true
			}
		}
		return nil, r
	}
	if f.pieces.heads[c.ID] == nil {
		f.pieces.heads[c.ID] = r
	}
	return c.Exchange, f.pieces.heads[c.ID]
}
