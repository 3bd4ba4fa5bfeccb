package websocket

import (
	"time"

	"unwire/captures"
)

// A timestamp is the time t of an event since the exchange began. If known is false, it means "now", at the
// time of use, for live traffic.
type timestamp struct {
	// t is the time since the exchange began; it is valid if known is set.
	t time.Duration
	// known means that t is the time of the event; otherwise the time of use counts, as for live traffic.
	known bool
}

// chunk calls Chunk or ChunkAt of a Recording.
func (m timestamp) chunk(to captures.Recording, dir captures.Direction, p []byte) {
	if m.known {
		to.ChunkAt(dir, m.t, p)
	} else {
		to.Chunk(dir, p)
	}
}

// message calls Message or MessageAt of a Recording.
func (m timestamp) message(to captures.Recording, dir captures.Direction, op captures.Opcode, p []byte) {
	if m.known {
		to.MessageAt(dir, m.t, op, p)
	} else {
		to.Message(dir, op, p)
	}
}

// end calls End or EndAt of a Recording.
func (m timestamp) end(to captures.Recording, o captures.Outcome, errText string) {
	if m.known {
		to.EndAt(m.t, o, errText)
	} else {
		to.End(o, errText)
	}
}
