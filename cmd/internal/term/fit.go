package term

import (
	"math"
	"slices"
	"sort"
)

// unlimited is used as the width of a terminal whose width is not known.
const unlimited = math.MaxInt32

// A layout says which columns of a table are drawn, and how wide.
type layout struct {
	// columns are the indices of the columns that are drawn.
	columns []int

	// widths are their widths in cells.
	widths []int

	// dropped are the names of the columns that have content and are not drawn.
	dropped []string
}

// fit chooses the columns of a table and their widths so that the table fits into width cells.
//
// Columns without content are left out, except the first. While the table is too wide even with its
// columns at their least widths, the column with the highest Drop is dropped; of several, the last. Then
// all columns that can be shortened and are wider than a common limit are shortened to it. The limit is
// as high as possible, so that short columns stay complete.
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

// measure returns for each column the width of its widest cell without the header (natural), and the
// least width to which it may be shortened.
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

// mostName is the width up to which the last part of a qualified name is kept complete, even if other
// columns have to be dropped for it.
const mostName = 44

// total returns the width of a table with the given columns, including the gaps between them; widths are
// indexed by column.
func total(columns, widths []int) int {
	sum := columnGap * (len(columns) - 1)
	for _, j := range columns {
		sum += widths[j]
	}
	return sum
}

// share returns the widths of the given columns so that they fit into width; see fit. natural and least
// are the results of measure.
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
