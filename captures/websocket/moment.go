package websocket

import (
	"time"

	"unwire/captures"
)

// A moment is when something passed, from when its exchange began. The zero value is now,
// whenever that is.
type moment struct {
	t     time.Duration
	known bool
}

func (m moment) chunk(to captures.Recording, dir captures.Direction, p []byte) {
	if m.known {
		to.ChunkAt(dir, m.t, p)
	} else {
		to.Chunk(dir, p)
	}
}

func (m moment) message(to captures.Recording, dir captures.Direction, op captures.Opcode, p []byte) {
	if m.known {
		to.MessageAt(dir, m.t, op, p)
	} else {
		to.Message(dir, op, p)
	}
}

func (m moment) end(to captures.Recording, o captures.Outcome, errText string) {
	if m.known {
		to.EndAt(m.t, o, errText)
	} else {
		to.End(o, errText)
	}
}
