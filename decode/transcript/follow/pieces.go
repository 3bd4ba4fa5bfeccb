package follow

import (
	"slices"

	"unwire/captures/profile"
	"unwire/decode"
	"unwire/decode/conversation"
)

// Limits for exchanges that are kept because they belong to conversations split over several exchanges.
const (
	// maxPieces is the maximum number of exchanges.
	maxPieces = 4096

	// maxPieceBytes is the maximum number of bytes of their bodies.
	maxPieceBytes = 64 << 20
)

// pieces has the exchanges that belong to conversations split over several exchanges: those in progress, and ended
// ones that later exchanges will be joined with.
type pieces struct {
	// profile describes how the service splits conversations over exchanges; may be nil.
	profile *profile.Profile

	// list has the exchanges in the order in which they began.
	list []*decode.Exchange

	// heads has, by the number of a conversation, the exchange with which its answer is reported.
	heads map[int64]*running
}

// addExchange adds an exchange and drops the oldest ones if there are too many.
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

// conversationOf joins and returns the conversation to which exchange id belongs, as far as it was recorded, or
// nil.
func (p *pieces) conversationOf(id int64) *conversation.Conversation {
	for _, c := range conversation.Join(p.list, decode.Options{Profile: p.profile}) {
		if slices.Contains(c.Heads, id) || slices.Contains(c.Appends, id) {
			return c
		}
	}
	return nil
}

// whole returns the exchange that is classified for r: its own, or the joined conversation to which it contributes
// the server's messages. told is where the reported answer is stored. ex is nil if r carries only a message of the
// client, because its conversation is reported with another exchange.
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

	// The first piece of the server reports the answer of the conversation.
	if f.pieces.heads[c.ID] == nil {
		f.pieces.heads[c.ID] = r
	}
	return c.Exchange, f.pieces.heads[c.ID]
}
