package es

import (
	"context"
	"fmt"

	"unwire/replay/probe"
)

// disputed reports whether a question about field n has a claim for which is returns true.
func (m *message) disputed(n int32, is func(*probe.Claim) bool) bool {
	for _, q := range m.server.options.Questions {
		if q.Number != n || q.Path != probe.PathText(m.path) {
			continue
		}
		for k := range q.Claims {
			if is(&q.Claims[k]) {
				return true
			}
		}
	}
	return false
}

// labels determines which 4-byte and 8-byte fields are repeated; if there are questions, only for the
// fields that they are about. It uses the test of Verify, at which the parser stops only at a repeated
// field. One request confirms all singular fields, and each repeated field takes one more.
func (m *message) labels(ctx context.Context) error {
	var left []*field
	for _, n := range m.order() {
		f := m.found[n]
		if !f.group && (f.slot == slotFixed32 || f.slot == slotFixed64) && (len(m.server.options.Questions) == 0 || m.disputed(n, func(c *probe.Claim) bool { return c.Label != "" || c.Kind == "packed" })) {
			left = append(left, f)
		}
	}
	for len(left) > 0 {
		some := left
		if m.small() {
			some = left[:min(len(left), max(1, (m.server.sizeLimit()-smallRest)/labelTestSize))]
		}
		m.asked++
		b := appendControl(nil)
		for i, f := range some {
			as := asFixed32
			if f.slot == slotFixed64 {
				as = asFixed64
			}
			b = appendLabelTest(b, f.number, as, false, m.id(i))
		}
		a, err := m.server.Ask(ctx, fmt.Sprintf("%s: which of %d numbers are lists?", m.at(), len(some)), m.whole(appendEnd(b, m.id(len(some)))))
		if err != nil {
			return err
		}
		g := m.read(a)
		switch {
		// The parser reached the end: all of them are single numbers.
		case g.isEnd(len(some)):
			for _, f := range some {
				f.label = "singular"
				m.addEvidence(f, "the parser reads a single number, not repeated ones: "+a.Quoted())
			}
			left = left[len(some):]

		// It stopped at a list: all fields before it are single numbers.
		case g.canary && g.slot == slotPacked && g.index < len(some):
			for _, f := range some[:g.index] {
				f.label = "singular"
				m.addEvidence(f, "the parser reads a single number, not repeated ones")
			}
			some[g.index].label = "repeated"
			m.addEvidence(some[g.index], "the parser reads repeated numbers: "+a.Quoted())
			left = left[g.index+1:]
		default:
			// the answer decides nothing
			return nil
		}
	}
	return nil
}

// labelTestSize is the smallest size in bytes of the test of one field's label.
const labelTestSize = 48
