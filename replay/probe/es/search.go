package es

import (
	"context"
	"math"
	"strings"

	"unwire/replay/probe"
)

// run finds all fields, from the highest number down, with about one request for each field. Numbers
// that the parser has skipped are not tested again.
func (m *message) run(ctx context.Context) error {
	if m.entry {
		return m.runEntry(ctx)
	}
	// deep is the varint that still has to be distinguished from a message that contains itself.
	var deep int32
	for high := m.numbers.Below(math.MaxInt32); ; {
		batch := m.fitting(m.batch(high))
		if m.seek {
			m.seek = false
			n, err := m.seekGroup(ctx, batch)
			if err != nil {
				return err
			}
			if n != 0 {
				m.assumed = &assumption{n, high, batch.numbers}
				high = m.numbers.Below(n - 1)
				continue
			}
		}

		// Bisect the suspects, one of which stops the parser without naming a canary.
		if len(m.suspects) > 1 {
			batch = batch.cut(len(m.suspects) / 2)
		}
		batch = m.ahead(batch)
		if len(batch.numbers) == 0 && batch.last() && deep == 0 && m.assumed == nil && len(m.candidatesForMessage()) == 0 {
			m.complete = true
			// nothing is left to probe
			return nil
		}
		payload := m.payload(deep, batch)
		a, err := m.server.Ask(ctx, m.at()+": "+batch.about(), payload)

		// If the payload is too large, retry with a smaller batch and without deep nesting.
		if err == probe.ErrSize && len(payload) > m.server.sizeLimit() && len(batch.numbers) > 1 {
			if deep != 0 {
				m.found[deep].unsure = true
				deep = 0
			}
			continue
		}
		if err != nil {
			return err
		}
		high, deep, err = m.learn(ctx, a, batch, high, deep)
		m.asked++
		if err != nil || m.complete {
			return err
		}
	}
}

// learn evaluates the response a to the request that tested the field numbers of batch b.
//
// Shape: from is the number at which the batch began, and high the one at which the next batch begins.
// deep is the field that was tested by deep nesting, or 0; next is that for the next batch.
func (m *message) learn(ctx context.Context, a *probe.Answer, b batch, from, deep int32) (high, next int32, err error) {
	// An assumption about a group holds only if the parser read past the assertion.
	g := m.read(a)
	if was := m.assumed; was != nil {
		m.assumed = nil
		if a.FromParser && !gaveUp(a.Text) && (!g.canary || g.index == assertion) {
			m.retract(was)
			return was.high, 0, nil
		}
	}

	switch {
	case g.canary && g.index == controlIndex:
		return 0, 0, probe.OracleOff(m.path, a)
	case b.has(g):
		m.isVarint(deep)
		high, next = m.learnField(a, b, g)
		return high, next, nil
	case g.isEnd(len(b.numbers)):
		m.isVarint(deep)
		high, err = m.learnPassed(ctx, a, b, deep)
		return high, 0, err
	case a.FromParser && gaveUp(a.Text) && m.measures(deep, b):
		m.server.countsLevels, m.complete = true, true
		return 0, 0, nil
	}

	// The canary of a confirmation: a message differs from the fields around it.
	varints := m.candidatesForMessage()
	if k := g.index - len(b.numbers) - 1; g.canary && k >= 0 && k < len(varints) {
		m.isVarint(deep)
		f := m.found[varints[k]]
		f.slot = slotMessage
		m.addEvidence(f, "the field contains other fields than the message around it")
		return from, 0, nil
	}
	if !a.FromParser {
		return 0, 0, probe.Stop("the answer to request %d contains no error of the server's parser: %s", m.server.Requests, a.Brief())
	}
	high, err = m.learnRefusal(ctx, a, b, g.illegal, from, deep)
	return high, 0, err
}

// learnField records the field at whose canary g (an illegal tag) the parser stopped. high is the
// number at which the next batch begins, and next the field to be tested by deep nesting in it; 0 for
// none.
func (m *message) learnField(a *probe.Answer, b batch, g sighting) (high, next int32) {
	index := g.index
	if index >= len(b.numbers) {
		l := b.looks[index-b.base]
		m.enter(l.number, l.by, a)
		b.numbers, index = []int32{l.next}, 0
	}
	f := m.enter(b.numbers[index], g.slot, a)
	switch {
	case g.slot != slotVarint || m.hints[f.number].Varint:
	case m.small():
		f.unsure = true
	default:
		next = f.number
	}
	m.clearSuspects(b.numbers[:index+1])
	return m.numbers.Below(f.number - 1), next
}

// learnPassed records that no field number of a batch exists, because the parser stopped at none of
// their tests.
func (m *message) learnPassed(ctx context.Context, a *probe.Answer, b batch, deep int32) (high int32, err error) {
	m.server.levelsUncounted = m.server.levelsUncounted || m.measures(deep, b)
	m.complete = b.last()
	m.clearSuspects(b.numbers)
	if len(m.suspects) == 1 {
		high = m.numbers.Below(m.suspects[0] - 1)
		return high, m.identify(ctx, m.suspects[0], a)
	}
	return b.next, nil
}

// learnRefusal evaluates an error of the parser that quotes none of the probe's canaries. illegal means
// that it quotes another illegal tag.
func (m *message) learnRefusal(ctx context.Context, a *probe.Answer, b batch, illegal bool, from, deep int32) (high int32, err error) {
	switch {
	case deep != 0 && gaveUp(a.Text):
		m.server.countsLevels = m.server.countsLevels || strings.Contains(a.Text, levelsCounted)
		f := m.found[deep]
		f.slot = slotMessage
		m.addEvidence(f, "the field contains itself, because the parser accepts nested copies up to its limit: "+a.Quoted())
		return from, nil
	// the answer says nothing about the varint
	case deep != 0 && !illegal:
		m.found[deep].unsure = true
		return from, nil
	}

	// The batch contains something that the parser refuses without naming it; bisect it.
	if len(b.numbers) > 0 {
		m.isVarint(deep)
	}
	if len(b.numbers) == 1 {
		m.suspects, m.illegal = b.numbers, illegal
	}
	if err := m.control(ctx); err != nil {
		return 0, err
	}
	switch len(b.numbers) {
	case 0:
		return 0, probe.Stop("the server's parser reports an error for a request without the tested fields")
	case 1:
		return b.next, m.identify(ctx, b.numbers[0], a)
	}
	m.seek = illegal && len(m.suspects) == 0
	m.suspects, m.illegal = b.numbers, illegal
	return from, nil
}

// levelsCounted is the error of protobuf-es 2 for nesting that is too deep.
const levelsCounted = "maximum recursion depth of 100 "

// gaveUp reports whether an error message means that the parser descended too deeply: protobuf-es 2
// limits the levels, protobuf-es 1 exhausts the stack.
func gaveUp(message string) bool {
	s := strings.ToLower(message)
	return strings.Contains(s, "recursion") || strings.Contains(s, "call stack")
}
