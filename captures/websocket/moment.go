package websocket

import (
	"time"

	"unwire/captures"
)

// A timestamp is the time of an event since the exchange began. The zero value stands for the time at which it
// is used, for live traffic.
type timestamp struct {
	t     time.Duration
	known bool
}

// chunk, message and end call the method of a Recording with or without a time.
func (m timestamp) chunk(to captures.Recording, dir captures.Direction, p []byte) {
	if m.known {
		to.ChunkAt(dir, m.t, p)
	} else {
		to.Chunk(dir, p)
	}
}

func (m timestamp) message(to captures.Recording, dir captures.Direction, op captures.Opcode, p []byte) {
	if m.known {
		to.MessageAt(dir, m.t, op, p)
	} else {
		to.Message(dir, op, p)
	}
}

func (m timestamp) end(to captures.Recording, o captures.Outcome, errText string) {
	if m.known {
		to.EndAt(m.t, o, errText)
	} else {
		to.End(o, errText)
	}
}
