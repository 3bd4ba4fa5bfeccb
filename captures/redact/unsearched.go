package redact

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"unwire/captures"
)

// An Unsearched is a range of a body that could not be searched for secrets: the payload of another protocol,
// data with an unknown compression or that cannot be decompressed, or data that should be envelopes but is not.
// Its raw bytes were searched, so a secret in plain text was replaced.
type Unsearched struct {
	// Dir is the direction of the bytes that were not searched.
	Dir captures.Direction
	// Start is the offset in the body of the first byte that could not be searched.
	Start int64
	// End is the offset in the body after the last byte that could not be searched.
	End int64
	// Reason explains to the user why the bytes were not searched.
	Reason string

	// message means that the range is the payload of an envelope, whose prefix precedes Start.
	message bool
	// cut means that the body ends within an envelope. It is reported only if the exchange is complete, because
	// otherwise the body was just truncated.
	cut bool
}

const (
	// maxUnsearched is the largest number of ranges for a body; after that, the rest of the body counts
	// as one range.
	maxUnsearched = 10_000

	endsInEnvelope = "ends inside an envelope"
)

// Bytes returns the length of the range in bytes.
func (u *Unsearched) Bytes() int64 { return u.End - u.Start }

// Omission returns the edit that removes the range. If it is the payload of an envelope, an empty envelope
// remains.
func (u *Unsearched) Omission() Edit {
	if u.message {
		return Edit{Start: u.Start - 4, End: u.End, Data: make([]byte, 4)}
	}
	return Edit{Start: u.Start, End: u.End}
}

// note records a range that could not be searched, unless everything from an earlier position on counts as
// such.
func (b *BodyFilter) note(u Unsearched) {
	switch {
	case b.opaque != "" && u.Start >= b.opaqueFrom && u.Reason != b.opaque:
	case len(b.unsearched) >= maxUnsearched && b.opaque == "":
		b.giveUp(u.Start, u.Reason)
	default:
		b.unsearched = append(b.unsearched, u)
	}
}

// giveUp records that nothing from a position on can be searched, and why. The raw bytes are searched
// nevertheless.
func (b *BodyFilter) giveUp(from int64, reason string) {
	if b.opaque == "" {
		b.opaque, b.opaqueFrom = reason, from
	}
}

// Unsearched returns the ranges of the body that could not be searched. dir is the body's direction in the
// exchange ex. It is called after Close.
func (b *BodyFilter) Unsearched(ex *captures.Exchange, dir captures.Direction) []Unsearched {
	all := slices.Clone(b.unsearched)
	all = slices.DeleteFunc(all, func(u Unsearched) bool {
		return u.Bytes() == 0 || u.cut && (ex.Outcome != captures.Complete || ex.Truncated())
	})
	slices.SortStableFunc(all, func(a, b Unsearched) int { return cmp.Compare(a.Start, b.Start) })
	var out []Unsearched
	for _, u := range all {
		u.Dir = dir
		if n := len(out); n > 0 && u.Start < out[n-1].End {
			last := &out[n-1]
			last.End = max(last.End, u.End)
			continue
		}
		out = append(out, u)
	}
	return out
}

// ChangeProtocol records that the connection has switched to another protocol, named to, whose data cannot be
// searched. It returns the range, empty so far, that begins at this position.
func (b *BodyFilter) ChangeProtocol(dir captures.Direction, to string) Unsearched {
	reason := fmt.Sprintf("payload of %s", to)
	b.giveUp(b.in, reason)
	return Unsearched{Dir: dir, Start: b.in, End: b.in, Reason: reason}
}

// FindUnsearched returns the ranges of an exchange's bodies that cannot be searched for secrets, by direction
// and in order. The search is the same as during recording.
//
// Limits: 10,000 ranges for each direction; then the rest is one range. Errors: of src.
func (r *Redactor) FindUnsearched(ctx context.Context, src captures.ChunkSource, ex *captures.Exchange) ([]Unsearched, error) {
	p := NewExchangeFilter(r, ex, [2][]Edit{})

	// Do not read bodies that can be searched completely.
	if !p.bodies[captures.Up].mayMiss() && !p.bodies[captures.Down].mayMiss() {
		return nil, nil
	}
	var err error
	for c, cerr := range src.Chunks(ctx, ex.ID, 0) {
		if err = cerr; err != nil {
			break
		}
		if len(c.Data) == 0 {
			continue
		}
		b := p.bodies[c.Dir]
		b.Write(&c)
		b.Ready()
	}
	var all []Unsearched
	for dir, b := range p.bodies {
		b.Close(false)
		all = append(all, b.Unsearched(ex, captures.Direction(dir))...)
	}
	return all, err
}

// mayMiss reports, before any data, whether a part of the body may turn out to be impossible to search.
func (b *BodyFilter) mayMiss() bool {
	return b.framed != unframed || b.section != nil || b.opaque != ""
}
