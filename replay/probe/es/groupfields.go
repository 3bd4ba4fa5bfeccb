package es

import (
	"context"
	"fmt"

	"unwire/replay/probe"
)

// An assumption is a number that was found to be a group, but for chance, with
// what to go back to if it is none.
type assumption struct {
	number, high int32
	suspects     []int32
}

// seekGroup asks which of the suspects is a group, whose tags are read at once:
// the first field among them that exists is one, or we do not know what.
//
// Shape: 0 is none. What is no group may jump to a canary by chance.
func (m *message) seekGroup(ctx context.Context, b batch) (int32, error) {
	var p []byte
	for i, n := range b.numbers {
		p = appendGroupTest(p, n, m.id(i))
	}
	a, err := m.server.Ask(ctx, fmt.Sprintf("%s: which of %s is a group?", m.at(), b.about()), m.whole(appendEnd(p, m.id(len(b.numbers)))))
	if err != nil {
		return 0, err
	}
	g := m.read(a)
	m.asked++
	if !g.canary || g.slot != slotEnd || g.index >= len(b.numbers) {
		return 0, m.control(ctx)
	}
	m.enterGroup(b.numbers[g.index], a)
	return b.numbers[g.index], nil
}

// retract takes back that a number is a group.
func (m *message) retract(was *assumption) {
	delete(m.found, was.number)
	delete(m.excluded, was.number)
	m.suspects = was.suspects
}

// clearSuspects takes numbers out of the suspects: the parser is past them.
func (m *message) clearSuspects(numbers []int32) {
	for _, n := range numbers {
		if len(m.suspects) > 0 && m.suspects[0] == n {
			m.suspects = m.suspects[1:]
		}
	}
}

// identify finds out what the one suspect is that is left: a group, a message
// with a group in it, or what we do not know of. It is left out from then on.
func (m *message) identify(ctx context.Context, n int32, a *probe.Answer) error {
	m.suspects = nil
	m.excluded[n] = true
	if !m.illegal {
		m.unknown = append(m.unknown, n)
		return nil
	}
	m.asked++
	sure, err := m.server.Ask(ctx, fmt.Sprintf("%s: is %d a group?", m.at(), n), m.whole(appendEnd(appendGroupAssertion(appendControl(nil), n), m.id(0))))
	if err != nil {
		return err
	}
	switch g := m.read(sure); {
	case g.isEnd(0):
		m.enterGroup(n, a)
	// a single number would have met its canary
	case g.canary && g.index == assertion:
		m.found[n] = &field{number: n, slot: slotMessage}
		m.addEvidence(m.found[n], "tags are read in its value, and it is no group: "+sure.Quoted())
	default:
		m.unknown = append(m.unknown, n)
	}
	return nil
}

// enterGroup enters a number at which the parser stumbles without saying where,
// since it is a group. It is left out from then on.
func (m *message) enterGroup(n int32, a *probe.Answer) {
	m.suspects = nil
	m.excluded[n] = true
	m.found[n] = &field{number: n, group: true}
	m.addEvidence(m.found[n], "its value is read as tags at once, without a length: no number above it is, and "+a.Quoted())
}
