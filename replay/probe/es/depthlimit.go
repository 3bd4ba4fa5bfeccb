package es

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"unwire/replay/probe"
)

// levelLimit is the default nesting limit of protobuf-es 2.
const levelLimit = 100

// groupNumber is the field number of the nested unknown groups; it is reserved, so no definition
// can have it.
const groupNumber = 19_082

// appendGroups appends n groups with an unknown field number, nested in each other.
func appendGroups(b []byte, n int) []byte {
	for range n {
		b = protowire.AppendTag(b, groupNumber, protowire.StartGroupType)
	}
	for range n {
		b = protowire.AppendTag(b, groupNumber, protowire.EndGroupType)
	}
	return b
}

// measure determines which fields that accept varints are messages, if the surrounding fields do not
// show it. It sends as many nested groups as the parser accepts at the field's own nesting level.
// Inside a message, which is one level deeper, these exceed the limit. A map entry is read at the level
// of the map, so the same test distinguishes messages from maps.
func (m *message) measure(ctx context.Context) error {
	var doubt []int32
	for _, n := range m.order() {
		switch f := m.found[n]; {
		case f.group:
		case f.slot == slotVarint && !f.level && !m.hints[n].Varint && (f.unsure || !m.distinct(n)),
			f.slot == slotMessage && m.disputed(n, func(c *probe.Claim) bool { return c.Label == "map" }):
			doubt = append(doubt, n)
		}
	}
	left := levelLimit - 1 - len(m.path)
	if len(doubt) == 0 || left < 1 || !m.complete || m.server.levelsUncounted {
		return nil
	}
	if m.server.countsLevels && len(m.path) == 0 {
		return m.measureSome(ctx, doubt, left)
	}
	// A map entry is read at the level of the map, so a path through maps allows more levels.
	for range len(m.path) + 1 {
		a, err := m.server.Ask(ctx, m.at()+": are levels counted?", m.whole(appendEnd(appendGroups(nil, left+1), 0)))
		if err != nil {
			return err
		}
		if a.FromParser && gaveUp(a.Text) {
			return m.measureSome(ctx, doubt, left)
		}
		left++
	}
	m.server.levelsUncounted = true
	return nil
}

// measureSome determines for the fields doubt, with one request, whether they are messages; see
// measure. If the parser gives up, it bisects. left is the number of nested groups that is sent.
func (m *message) measureSome(ctx context.Context, doubt []int32, left int) error {
	// All doubtful fields are tested at once; if the parser gives up, the request is bisected.
	groups := appendGroups(nil, left)
	var b []byte
	for _, n := range doubt {
		b = protowire.AppendTag(b, protowire.Number(n), protowire.BytesType)
		b = protowire.AppendBytes(b, groups)
	}
	if m.small() && len(b)+smallRest > m.server.sizeLimit() && len(doubt) > 1 {
		return m.measureHalves(ctx, doubt, left)
	}
	a, err := m.server.Ask(ctx, fmt.Sprintf("%s: at which level is what is in %d?", m.at(), doubt), m.whole(appendEnd(b, 0)))
	if err != nil {
		return err
	}
	switch g := readCanary(a.Text); {
	case g.isEnd(0):
		for _, n := range doubt {
			f := m.found[n]
			if f.slot == slotMessage {
				f.label = "map"
			}
			f.level = true
			m.addEvidence(f, "the parser reads the content of the field at the level of the field itself")
		}
	case !a.FromParser || !gaveUp(a.Text):
		// the answer decides nothing
		return nil
	case len(doubt) == 1:
		m.found[doubt[0]].slot, m.found[doubt[0]].below = slotMessage, true
		m.addEvidence(m.found[doubt[0]], "the parser reads the content of the field one level below: "+a.Quoted())
	default:
		return m.measureHalves(ctx, doubt, left)
	}
	return nil
}

// measureHalves is measureSome for both halves of doubt separately.
func (m *message) measureHalves(ctx context.Context, doubt []int32, left int) error {
	if err := m.measureSome(ctx, doubt[:len(doubt)/2], left); err != nil {
		return err
	}
	return m.measureSome(ctx, doubt[len(doubt)/2:], left)
}
