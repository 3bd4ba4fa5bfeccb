package es

import (
	"context"
	"fmt"
	"slices"

	"unwire/replay/probe"
)

// reach verifies that the path of the message to leads to a message, because tests would be read
// differently in a field of another kind. It records which fields of the path are groups, and whether
// the last one is a map whose entries are read by separate code.
//
// Shape: known caches the messages that were probed, by path.
func (s *server) reach(ctx context.Context, res *probe.Result, to *message, known map[string]*message) (ok bool, err error) {
	o := s.options

	// Walk the path one field at a time; each must be a message, a group or a map entry.
	var groups []int
	entry := false
	for i, n := range to.path {
		at := probe.PathText(to.path[:i+1])
		m := known[at]
		if m == nil {
			ask := func(numbers probe.Numbers) error {
				m = newMessage(s, to.path[:i], numbers)
				m.groups, m.entry = groups, entry
				return m.run(ctx)
			}
			if err := ask(probe.Numbers{{First: n, Last: n}}); err != nil {
				return false, err
			}
			if err := m.measure(ctx); err != nil {
				return false, err
			}
			if f := m.found[n]; f != nil && f.slot == slotVarint && !f.level && len(o.Questions) == 0 && o.Numbers.Below(n) == n {
				// One number is weak evidence for a message, so probe its neighbours too.
				if err := ask(o.Numbers); err != nil {
					return false, err
				}
			}
			known[at] = m
		}
		f := m.found[n]
		switch {
		case f != nil && f.group:
			groups = append(slices.Clone(groups), i)
		case f == nil || f.slot != slotMessage && f.slot != slotMap && !(f.slot == slotVarint && m.hints[n].Len):
			res.Note(fmt.Sprintf("the server does not parse field %s as a message, so unwire tested no fields in it", at))
			return false, nil
		}
		entry = f.slot == slotMap
	}
	to.groups, to.entry = groups, entry
	return true, nil
}
