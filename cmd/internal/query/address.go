package query

import (
	"fmt"
	"regexp"
	"strconv"

	"unwire/captures"
)

// An Address names a capture, an exchange of it, or a frame of that:
// F.uwc, F.uwc#7, F.uwc#7/up/0; F.uwc#7/part and F.uwc#7/part/up/0 where a
// conversation in pieces goes by exchange 7 and the piece itself is meant.
type Address struct {
	// File is the path of the capture.
	File     string
	Exchange int64 // 0: the whole capture
	Part     bool  // the exchange alone, not the conversation that goes by it
	// Dir is the direction of the frame.
	Dir   captures.Direction
	Frame int // -1: the whole exchange
}

var fragment = regexp.MustCompile(`^(.+)#([0-9]{1,18})(/part)?(?:/(up|down)/([0-9]{1,9}))?$`)

// ParseAddress reads an address; what is none names a file.
func ParseAddress(s string) Address {
	a := Address{File: s, Frame: -1}
	m := fragment.FindStringSubmatch(s)
	if m == nil {
		return a
	}
	a.File = m[1]
	a.Exchange, _ = strconv.ParseInt(m[2], 10, 64) // the pattern bounds it
	a.Part = m[3] != ""
	if m[4] != "" {
		a.Frame, _ = strconv.Atoi(m[5])
		if m[4] == captures.Down.String() {
			a.Dir = captures.Down
		}
	}
	return a
}

func (a Address) String() string {
	if a.Exchange == 0 {
		return a.File
	}
	s := fmt.Sprintf("%s#%d", a.File, a.Exchange)
	if a.Part {
		s += "/part"
	}
	if a.Frame < 0 {
		return s
	}
	return fmt.Sprintf("%s/%s/%d", s, a.Dir, a.Frame)
}
