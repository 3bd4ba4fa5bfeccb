package es

import (
	"context"
	"fmt"
	"slices"

	"unwire/replay/probe"
)

// reach makes sure that the path of a message leads to a message: what is wrapped in
// anything else is read as something else. It enters which of the path's fields
// are groups, and whether the last is a map whose entries are read by code of
// their own.
//
// Shape: known holds what was asked already, by path.
func (s *server) reach(ctx context.Context, res *probe.Result, to *message, known map[string]*message) (ok bool, err error) {
	o := s.options
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
				// One number is little to tell a message by: its neighbours are more.
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
			res.Note(fmt.Sprintf("%s is no message, as far as the server tells: nothing below it was asked", at))
			return false, nil
		}
		entry = f.slot == slotMap
	}
	to.groups, to.entry = groups, entry
	return true, nil
}
