package sources

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
)

// Limits of Parts that are read from stored evidence.
const (
	// maxSegments is the maximum number of segments in all parts.
	maxSegments = 1 << 22
	// maxSegment is the maximum length of a segment's hash in bytes.
	maxSegment = 64
	// maxText is the maximum length of each text of a Part in bytes.
	maxText = 4096
)

// A Part names messages that a pipeline counts separately: those of one method and direction, from one version of a
// client, of one day. Each may be "" if it is unknown.
type Part struct {
	// Method is "pkg.Service/Method", or the name of a message type that belongs to no method.
	Method string `json:"method" pb:"1"`
	// Direction is "up" or "down"; "" for messages that belong to no method.
	Direction string `json:"direction" pb:"2"`
	// Client is the client program with its version, such as "app/1.2".
	Client string `json:"client" pb:"3"`
	// Day is the day in UTC on which the exchange began, as 2006-01-02.
	Day string `json:"day" pb:"4"`
}

// Compare orders parts by method, direction, client and day.
func (p Part) Compare(o Part) int {
	return cmp.Or(cmp.Compare(p.Method, o.Method), cmp.Compare(p.Direction, o.Direction), cmp.Compare(p.Client, o.Client), cmp.Compare(p.Day, o.Day))
}

// A PartSegments is a part with the segments of recordings from which its messages were counted.
type PartSegments struct {
	// Part identifies the messages by method, direction, client and day.
	Part Part `json:"part" pb:"1"`
	// Segments are hashes of the contents of the segments, in ascending order.
	Segments [][]byte `json:"segments" pb:"2"`
}

// Parts are the segments of recordings that were counted, by part, in the order of Part.Compare. Unlike a Set,
// they are exact.
type Parts []PartSegments

// Segments returns the hashes of the segments that were counted for a part.
func (ps Parts) Segments(p Part) [][]byte {
	if i, found := ps.find(p); found {
		return ps[i].Segments
	}
	return nil
}

// find returns the index of a part, or the index at which it can be inserted and false.
func (ps Parts) find(p Part) (int, bool) {
	return slices.BinarySearchFunc(ps, p, func(have PartSegments, p Part) int { return have.Part.Compare(p) })
}

// Merge returns the union of ps and o. Both are unchanged.
func (ps Parts) Merge(o Parts) Parts {
	if len(o) == 0 {
		return ps
	}
	out := make(Parts, 0, len(ps)+len(o))
	for len(ps) > 0 || len(o) > 0 {
		switch {
		case len(o) == 0 || len(ps) > 0 && ps[0].Part.Compare(o[0].Part) < 0:
			out, ps = append(out, ps[0]), ps[1:]
		case len(ps) == 0 || ps[0].Part.Compare(o[0].Part) > 0:
			out, o = append(out, o[0]), o[1:]
		default:
			both := slices.Concat(ps[0].Segments, o[0].Segments)
			slices.SortFunc(both, bytes.Compare)
			out = append(out, PartSegments{ps[0].Part, slices.CompactFunc(both, bytes.Equal)})
			ps, o = ps[1:], o[1:]
		}
	}
	return out
}

// Share returns the share, from 0 to 1, of o's segments that ps has for the same parts.
func (ps Parts) Share(o Parts) float64 {
	all, common := 0, 0
	for _, p := range o {
		have := ps.Segments(p.Part)
		all += len(p.Segments)
		for _, s := range p.Segments {
			if _, found := slices.BinarySearchFunc(have, s, bytes.Compare); found {
				common++
			}
		}
	}
	if all == 0 {
		return 0
	}
	return float64(common) / float64(all)
}

// Check returns an error for contents that no Parts can have. It is used for stored evidence.
func (ps Parts) Check() error {
	segments := 0
	for i, p := range ps {
		if i > 0 && ps[i-1].Part.Compare(p.Part) >= 0 {
			return errors.New("the parts of the evidence are not in order")
		}
		for _, text := range []string{p.Part.Method, p.Part.Direction, p.Part.Client, p.Part.Day} {
			if len(text) > maxText {
				return errors.New("the name of a part is too long")
			}
		}
		if segments += len(p.Segments); len(p.Segments) == 0 || segments > maxSegments {
			return errors.New("a part of the evidence has no segments, or too many")
		}
		for j, s := range p.Segments {
			if len(s) == 0 || len(s) > maxSegment || j > 0 && bytes.Compare(p.Segments[j-1], s) >= 0 {
				return errors.New("the segments of a part are not in order, or are not hashes")
			}
		}
	}
	return nil
}
