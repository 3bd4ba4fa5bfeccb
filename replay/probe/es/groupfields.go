package es

import (
	"context"
	"fmt"

	"unwire/replay/probe"
)

// An assumption is that a field number is a group, with the state to return to if it is not.
type assumption struct {
	// number is the field number; high is the number at which to continue if the assumption is wrong.
	number, high int32

	// suspects are message.suspects before the assumption.
	suspects []int32
}

// seekGroup determines which of the suspects in the batch b is a group, with one request. The parser
// reads a group's tags at once, so the first suspect that exists is a group, or is of an unknown kind.
//
// Shape: 0 means none. A field of another kind may reach a canary by chance.
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

// retract restores the state before an assumption that was wrong.
func (m *message) retract(was *assumption) {
	delete(m.found, was.number)
	delete(m.excluded, was.number)
	m.suspects = was.suspects
}

// clearSuspects removes numbers from the suspects, because the parser did not stop at them.
func (m *message) clearSuspects(numbers []int32) {
	for _, n := range numbers {
		if len(m.suspects) > 0 && m.suspects[0] == n {
			m.suspects = m.suspects[1:]
		}
	}
}

// identify determines the kind of field n, at which the parser stopped with the response a although it
// is no known kind: a group, a message with a group in it, or something unknown. Later requests do not
// test it again.
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
	// Any other single number would have met its own canary.
	case g.canary && g.index == assertion:
		m.found[n] = &field{number: n, slot: slotMessage}
		m.addEvidence(m.found[n], "the parser reads fields inside the value, and the field is not a group: "+sure.Quoted())
	default:
		m.unknown = append(m.unknown, n)
	}
	return nil
}

// enterGroup records field n as a group, because the parser stopped there with the response a, which
// identifies no other kind. Later requests do not test it again.
func (m *message) enterGroup(n int32, a *probe.Answer) {
	m.suspects = nil
	m.excluded[n] = true
	m.found[n] = &field{number: n, group: true}
	m.addEvidence(m.found[n], "the parser reads fields directly after the tag, without a length, so the field is a group: "+a.Quoted())
}
