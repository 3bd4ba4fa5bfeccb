package connection

import (
	"time"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/envelope"
)

// IsRaw reports whether a captured exchange is a TCP or TLS connection whose bytes are not divided into
// messages.
func IsRaw(ex *decode.Exchange) bool {
	return (ex.Transport == captures.RawTCP || ex.Transport == captures.RawTLS) && ex.Split == ""
}

// Turns returns a raw exchange with its bytes divided into turns, each of which is one frame: all bytes
// that one side sent until the other side sent something.
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

// A TurnReader divides the bytes that a server sends on a live raw connection into turns, i.e. into
// frames that correspond to the server's turns in the capture.
type TurnReader struct {
	// sizes are the sizes of the server's captured turns, in bytes.
	sizes []int

	// began is the time to which the times of frames are relative.
	began time.Time

	// data are the bytes of the current turn.
	data []byte

	// seq is the number of the current turn, from 0.
	seq int
}

// NewTurnReader returns a TurnReader for the server's turns in captured, an exchange that Turns
// returned.
func NewTurnReader(captured *decode.Exchange) *TurnReader {
	r := &TurnReader{began: time.Now()}
	for i := range captured.Frames {
		if f := &captured.Frames[i]; f.Dir == captures.Down {
			r.sizes = append(r.sizes, len(f.Data))
		}
	}
	return r
}

// Feed adds bytes from the server to the current turn. If the turn then has exactly the size of the
// captured one, it is ended and returned.
func (r *TurnReader) Feed(data []byte) []decode.Frame {
	r.data = append(r.data, data...)
	if r.seq < len(r.sizes) && len(r.data) == r.sizes[r.seq] {
		return r.Flush()
	}
	return nil
}

// Pending reports whether the current turn has any bytes. If the server stays silent then, Flush should
// be called.
func (r *TurnReader) Pending() bool { return len(r.data) > 0 }

// Flush ends the current turn and returns it; nil if it is empty.
func (r *TurnReader) Flush() []decode.Frame {
	if len(r.data) == 0 {
		return nil
	}
	f := decode.Frame{Dir: captures.Down, Seq: r.seq, T: time.Since(r.began), Frame: envelope.Frame{Len: len(r.data), Raw: r.data, Data: r.data}}
	r.data, r.seq = nil, r.seq+1
	return []decode.Frame{f}
}
