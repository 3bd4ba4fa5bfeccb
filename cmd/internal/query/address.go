package query

import (
	"fmt"
	"regexp"
	"strconv"
	"sync"

	"unwire/captures"
)

// An Address names a capture (F.uwc), an exchange in it (F.uwc#7), or a frame of an exchange
// (F.uwc#7/up/0). If a conversation was split over several exchanges, F.uwc#7 names the whole
// conversation if 7 is its first exchange, and F.uwc#7/part the exchange alone.
type Address struct {
	// File is the path of the capture.
	File string

	// Exchange is the number of the exchange; 0 means the whole capture.
	Exchange int64

	// Part means the exchange alone, instead of the conversation that begins with it.
	Part bool

	// Dir is the direction of the frame.
	Dir captures.Direction

	// Frame is the number of the frame in its direction, from 0; -1 means the whole exchange.
	Frame int
}

// fragment matches an address of an exchange or frame.
var fragment = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(.+)#([0-9]{1,18})(/part)?(?:/(up|down)/([0-9]{1,9}))?$`)
})

// ParseAddress parses an address. A text without "#" and a number is taken as the path of a capture.
func ParseAddress(s string) Address {
	a := Address{File: s, Frame: -1}
	m := fragment().FindStringSubmatch(s)
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

// String returns the address as text, which ParseAddress reads.
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
