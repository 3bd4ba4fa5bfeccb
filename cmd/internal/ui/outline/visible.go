package outline

import (
	"slices"
	"sort"
)

// Visible is the list of rows that are shown while some rows are closed.
type Visible struct {
	// Total is the number of visible rows.
	Total int

	// hidden are the ranges of rows inside closed rows, in order and without overlap.
	hidden []hiddenRange
}

// A hiddenRange is a range of hidden rows.
type hiddenRange struct {
	// first is the first row of the range.
	first int32

	// last is the last row of the range.
	last int32

	// before is the number of hidden rows in earlier ranges.
	before int32
}

// Visible returns the rows that are shown while the rows in closed are closed. It ignores numbers without
// a row.
func (o *Outline) Visible(closed []int32) Visible {
	v := Visible{Total: len(o.Rows)}
	last := int32(-1)
	for _, i := range slices.Sorted(slices.Values(closed)) {
		if i < 0 || int(i) >= len(o.Rows) || i <= last || o.Rows[i].Last == i {
			continue
		}
		last = o.Rows[i].Last
		v.hidden = append(v.hidden, hiddenRange{i + 1, last, int32(len(o.Rows) - v.Total)})
		v.Total -= int(last - i)
	}
	return v
}

// Rows returns the numbers of the rows at the positions [from,to) among the visible rows.
func (v Visible) Rows(from, to int) []int32 {
	from, to = max(from, 0), min(to, v.Total)
	if from >= to {
		return nil
	}
	rows := make([]int32, 0, to-from)
	k := sort.Search(len(v.hidden), func(k int) bool { return int(v.hidden[k].first-v.hidden[k].before) > from })
	row := int32(from)
	if k > 0 {
		h := v.hidden[k-1]
		row += h.before + h.last - h.first + 1
	}
	for len(rows) < to-from {
		if k < len(v.hidden) && row == v.hidden[k].first {
			row = v.hidden[k].last + 1
			k++
			continue
		}
		rows = append(rows, row)
		row++
	}
	return rows
}

// Position returns the position of a row among the visible rows, or of the closed row that hides it.
func (v Visible) Position(row int32) int {
	k := sort.Search(len(v.hidden), func(k int) bool { return v.hidden[k].first > row })
	if k == 0 {
		return int(row)
	}
	h := v.hidden[k-1]
	if row <= h.last {
		return int(h.first - 1 - h.before)
	}
	return int(row - h.before - (h.last - h.first + 1))
}
