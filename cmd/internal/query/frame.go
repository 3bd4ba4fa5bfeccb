package query

import (
	"errors"
	"fmt"

	"unwire/decode"
)

// A noFrameError reports that an exchange does not have the addressed frame.
type noFrameError struct {
	// Address is the address of the frame.
	Address Address

	// Frames is the number of frames that the exchange has in that direction.
	Frames int
}

// Error returns the text.
func (e *noFrameError) Error() string {
	return fmt.Sprintf("%s: the frame does not exist; number of frames in this direction: %d", e.Address, e.Frames)
}

// FrameAt returns the frame of an exchange that an address names.
//
// Errors: noFrameError.
func FrameAt(ex *decode.Exchange, a Address) (*decode.Frame, error) {
	if f := ex.Frame(a.Dir, a.Frame); f != nil {
		return f, nil
	}
	n := 0
	for i := range ex.Frames {
		if ex.Frames[i].Dir == a.Dir {
			n++
		}
	}
	return nil, &noFrameError{a, n}
}

// FrameAddress returns the address of a frame in a capture file. part means that the frame is numbered in
// its exchange and not in a conversation of several exchanges.
func FrameAddress(file string, ex *decode.Exchange, f *decode.Frame, part bool) Address {
	return Address{File: file, Exchange: ex.ID, Part: part, Dir: f.Dir, Frame: f.Seq}
}

// IsNoFrame reports whether err says that an exchange does not have the addressed frame.
func IsNoFrame(err error) bool {
	var e *noFrameError
	return errors.As(err, &e)
}
