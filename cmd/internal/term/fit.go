package term

import (
	"math"
	"slices"
	"sort"
)

// unlimited is the width of a terminal whose width is unknown.
const unlimited = math.MaxInt32

// A layout holds which columns of a table are drawn, and their widths.
type layout struct {
	columns []int // indices of the columns that are drawn
	widths  []int // in cells, of each of columns

	// dropped are the names of columns that have content and are not drawn.
	dropped []string
}

// fit decides what of a table is drawn in width cells.
//
// Columns without content are left out, but for the first. As long as the narrowest form of the table is
// too wide, the column with the highest Drop is dropped, of equal ones the last. Then
// all shortenable columns that are wider than a common limit are cut to it; the limit
// is as high as the width permits, so that short columns stay whole.
func fit(t Table, width int) layout {
	natural, least := measure(t)
	var l layout

	// A column without any value is left out, unless it is the first one.
	for j := range t.Columns {
		if natural[j] == 0 && len(t.Rows) > 0 && j > 0 {
			continue
		}
		header := Cells(t.Columns[j].Name)
		if t.NoHeader {
			header = 1
		}
		natural[j] = max(natural[j], header)
		least[j] = min(max(least[j], header), natural[j])
		l.columns = append(l.columns, j)
	}

	// Drop columns in the order that they define until the rest fits at its least width.
	all := l.columns
	var dropped []int
	for len(l.columns) > 1 && total(l.columns, least) > width {
		drop := -1
		for k, j := range l.columns {
			if t.Columns[j].Drop > 0 && (drop < 0 || t.Columns[j].Drop >= t.Columns[l.columns[drop]].Drop) {
				drop = k
			}
		}
		if drop < 0 {
			break
		}
		dropped = append(dropped, l.columns[drop])
		l.columns = slices.Delete(slices.Clone(l.columns), drop, drop+1)
	}

	// Where a wide column went, narrow ones that went before it may fit again.
	for _, j := range slices.Backward(dropped) {
		with := slices.DeleteFunc(slices.Clone(all), func(k int) bool { return k != j && !slices.Contains(l.columns, k) })
		if total(with, least) <= width {
			l.columns = with
		}
	}
	for _, j := range all {
		if !slices.Contains(l.columns, j) {
			l.dropped = append(l.dropped, t.Columns[j].Name)
		}
	}
	l.widths = share(t, l.columns, natural, least, width)
	return l
}

// measure returns for each column the width of its widest cell without the header, and the least width
// to which it may be shortened.
func measure(t Table) (natural, least []int) {
	natural, least = make([]int, len(t.Columns)), make([]int, len(t.Columns))
	for j, c := range t.Columns {
		tail := 0
		for _, row := range t.Rows {
			natural[j] = max(natural[j], Cells(row[j]))
			if c.Shorten == Name {
				tail = max(tail, Cells(ellipsis+lastName(row[j])))
			}
		}
		least[j] = natural[j]
		if c.Shorten != whole {
			least[j] = max(c.Min, min(tail, mostName))
		}
	}
	return natural, least
}

// mostName is how wide the last part of a name may be that a table makes room for by
// dropping columns.
const mostName = 44

// total returns the width of a table, including separators, whose columns have these widths.
func total(columns, widths []int) int {
	sum := columnGap * (len(columns) - 1)
	for _, j := range columns {
		sum += widths[j]
	}
	return sum
}

// share distributes the available width among the columns.
func share(t Table, columns, natural, least []int, width int) []int {
	widths := func(limit int, floor []int) []int {
		out := slices.Clone(natural)
		for _, j := range columns {
			if t.Columns[j].Shorten != whole {
				out[j] = min(natural[j], max(limit, floor[j]))
			}
		}
		return out
	}
	floor := least
	if total(columns, widths(0, least)) > width {
		floor = make([]int, len(natural)) // there is nothing left to drop
	}
	widest := 0
	for _, j := range columns {
		widest = max(widest, natural[j])
	}
	// The highest limit with which the table fits; 1 if none does.
	limit := max(1, sort.Search(widest, func(n int) bool { return total(columns, widths(n+1, floor)) > width }))
	chosen := widths(limit, floor)

	// What the common limit leaves over goes to the first columns.
	for _, j := range columns {
		if rest := width - total(columns, chosen); rest > 0 {
			chosen[j] = min(natural[j], chosen[j]+rest)
		}
	}

	// On a terminal that is too narrow for what is never shortened, the last columns are.
	for k := len(columns) - 1; k >= 0 && total(columns, chosen) > width; k-- {
		j := columns[k]
		chosen[j] = max(1, chosen[j]-(total(columns, chosen)-width))
	}
	return pick(chosen, columns)
}
