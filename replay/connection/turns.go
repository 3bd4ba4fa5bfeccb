package connection

import (
	"time"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/envelope"
)

// IsRaw reports whether an exchange is bytes without messages.
func IsRaw(ex *decode.Exchange) bool {
	return (ex.Transport == captures.RawTCP || ex.Transport == captures.RawTLS) && ex.Split == ""
}

// Turns divides an exchange of raw bytes into frames: each frame has all bytes that one side sent until
// the other side sent something.
func Turns(ex *decode.Exchange) *decode.Exchange {
	out := *ex
	out.Frames = nil
	var seq [2]int
	for i := range ex.Frames {
		f := ex.Frames[i]
		if last := len(out.Frames) - 1; last >= 0 && out.Frames[last].Dir == f.Dir {
			g := &out.Frames[last]
			g.Data = append(g.Data[:len(g.Data):len(g.Data)], f.Data...)
			g.Raw, g.Len, g.T = g.Data, len(g.Data), f.T
			continue
		}
		f.Seq = seq[f.Dir]
		seq[f.Dir]++
		out.Frames = append(out.Frames, f)
	}
	return &out
}

// A TurnReader puts the bytes of a server together to turns.
type TurnReader struct {
	sizes []int // of the captured turns of the server
	began time.Time
	data  []byte
	seq   int
}

// NewTurnReader expects the server's turns of a captured exchange that Turns returned.
func NewTurnReader(captured *decode.Exchange) *TurnReader {
	r := &TurnReader{began: time.Now()}
	for i := range captured.Frames {
		if f := &captured.Frames[i]; f.Dir == captures.Down {
			r.sizes = append(r.sizes, len(f.Data))
		}
	}
	return r
}

// Feed adds bytes. It returns a turn once that has as many bytes as the captured one.
func (r *TurnReader) Feed(data []byte) []decode.Frame {
	r.data = append(r.data, data...)
	if r.seq < len(r.sizes) && len(r.data) == r.sizes[r.seq] {
		return r.Flush()
	}
	return nil
}

// Pending reports whether a turn has begun: if the server is quiet it has ended, too.
func (r *TurnReader) Pending() bool { return len(r.data) > 0 }

// Flush ends the current turn although the other side has not sent anything.
func (r *TurnReader) Flush() []decode.Frame {
	if len(r.data) == 0 {
		return nil
	}
	f := decode.Frame{Dir: captures.Down, Seq: r.seq, T: time.Since(r.began), Frame: envelope.Frame{Len: len(r.data), Raw: r.data, Data: r.data}}
	r.data, r.seq = nil, r.seq+1
	return []decode.Frame{f}
}
