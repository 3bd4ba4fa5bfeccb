package redact

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"unwire/captures"
)

// Unsearched is a run of the bytes of a body that the search for secrets could
// not look into: the payload of another protocol, what is compressed in an unknown way
// or does not inflate, or what is no run of envelopes though the headers say so.
// The bytes as they are were searched, so a secret that is in them in the clear
// was replaced.
type Unsearched struct {
	Dir        captures.Direction
	Start, End int64  // in the direction's bytes
	Reason     string // why, in words

	message bool // the payload of an envelope, whose header is in front of Start
	cut     bool // it may only be cut off: reported if the exchange is complete
}

const (
	// maxUnsearched is how many runs are noted of a body, before all that
	// follows counts as one.
	maxUnsearched = 10_000

	endsInEnvelope = "ends inside an envelope"
)

// Bytes returns the length of the run.
func (u *Unsearched) Bytes() int64 { return u.End - u.Start }

// Omission returns the edit that removes the run. If the run is the payload of an
// envelope, an empty envelope remains.
func (u *Unsearched) Omission() Edit {
	if u.message {
		return Edit{Start: u.Start - 4, End: u.End, Data: make([]byte, 4)}
	}
	return Edit{Start: u.Start, End: u.End}
}

// note adds a run to those that were not searched.
func (b *BodyFilter) note(u Unsearched) {
	switch {
	case b.opaque != "" && u.Start >= b.opaqueFrom && u.Reason != b.opaque:
	case len(b.unsearched) >= maxUnsearched && b.opaque == "":
		b.giveUp(u.Start, u.Reason)
	default:
		b.unsearched = append(b.unsearched, u)
	}
}

// giveUp notes that nothing from a position on can be looked into. The bytes as
// they are are searched nevertheless.
func (b *BodyFilter) giveUp(from int64, reason string) {
	if b.opaque == "" {
		b.opaque, b.opaqueFrom = reason, from
	}
}

// Unsearched returns what was not searched in direction dir of the exchange, once
// the body is closed.
func (b *BodyFilter) Unsearched(ex *captures.Exchange, dir captures.Direction) []Unsearched {
	all := slices.Clone(b.unsearched)
	all = slices.DeleteFunc(all, func(u Unsearched) bool {
		return u.Bytes() == 0 || u.cut && (ex.Outcome != captures.Complete || ex.Shortened())
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

// ChangeProtocol notes that the search cannot look into what follows, as the
// connection changed to another protocol, and returns the empty run that
// begins there.
func (b *BodyFilter) ChangeProtocol(dir captures.Direction, to string) Unsearched {
	reason := fmt.Sprintf("payload of %s", to)
	b.giveUp(b.in, reason)
	return Unsearched{Dir: dir, Start: b.in, End: b.in, Reason: reason}
}

// FindUnsearched returns what of an exchange's bodies the search for secrets
// cannot look into, by direction and in order. It is the same search that a
// recorder does.
//
// Limits: 10,000 runs of each direction; the rest is one run then.
// Errors: of src.
func (r *Redactor) FindUnsearched(ctx context.Context, src captures.ChunkSource, ex *captures.Exchange) ([]Unsearched, error) {
	p := NewExchangeFilter(r, ex, [2][]Edit{})
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

// mayMiss reports whether there can be something in the body that the search
// cannot look into.
func (b *BodyFilter) mayMiss() bool {
	return b.framed != unframed || b.section != nil || b.opaque != ""
}
