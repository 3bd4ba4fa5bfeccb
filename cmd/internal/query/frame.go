package query

import (
	"errors"
	"fmt"

	"unwire/decode"
)

// A noFrameError says that an exchange does not have the frame of an address.
type noFrameError struct {
	Address Address
	Frames  int // that it has in this direction
}

func (e *noFrameError) Error() string {
	return fmt.Sprintf("%s: no such frame: %d %s", e.Address, e.Frames, e.Address.Dir)
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

// FrameAddress names a frame of an exchange of a capture file.
func FrameAddress(file string, ex *decode.Exchange, f *decode.Frame, part bool) Address {
	return Address{File: file, Exchange: ex.ID, Part: part, Dir: f.Dir, Frame: f.Seq}
}

// IsNoFrame reports whether an error says that an exchange does not have a frame.
func IsNoFrame(err error) bool {
	var e *noFrameError
	return errors.As(err, &e)
}
