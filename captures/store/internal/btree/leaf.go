package btree

import (
	"math"
	"time"

	"unwire/captures"
)

// A leaf is a page of chunks with some that are wanted.
type leaf struct {
	treePage
	lo, hi int
}

// A span is some of the chunks that are wanted, and the page that they are below.
type span struct {
	page   uint32
	lo, hi int
}

// leaves finds the pages of chunks by their numbers, which ascend: of all, or the first.
func (p *pager) leaves(root uint32, wanted []indexed) (list []leaf) {
	if len(wanted) == 0 {
		return nil
	}
	level := []span{{root, 0, len(wanted)}}
	for range maxTreeDepth {
		if limit := max(pageTotal/p.size, 16); len(level) > limit {
			level = level[:limit]
		}
		numbers := make([]uint32, len(level))
		for i, s := range level {
			numbers[i] = s.page
		}
		pages, ok := p.fetch(numbers)
		if !ok {
			return nil
		}
		var below []span
		for _, s := range level {
			page, ok := p.parse(pages[s.page])
			switch {
			case ok && page.kind == innerTable && len(list) == 0:
				if below, ok = appendSpans(below, &page, s, wanted); !ok {
					return nil
				}
			case ok && page.kind == leafTable && len(below) == 0: // all are on one level
				list = append(list, leaf{page, s.lo, s.hi})
			default:
				return list
			}
		}
		if len(below) == 0 {
			return list
		}
		level = below
	}
	return nil
}

// appendSpans divides a span among the pages below the inner page of a table.
func appendSpans(below []span, page *treePage, s span, wanted []indexed) ([]span, bool) {
	for at := s.lo; at < s.hi; {
		rowid := wanted[at].rowid
		i, ok := page.find(func(cell []byte) (bool, bool) {
			key, _, ok := parseRow(cell, 0)
			return key >= rowid, ok
		})
		if !ok {
			return nil, false
		}
		child, end := page.right(), s.hi
		if i < page.cells {
			var cell []byte
			if child, cell, ok = page.cell(i); !ok {
				return nil, false
			}
			key, _, _ := parseRow(cell, 0)
			for end = at + 1; end < s.hi && wanted[end].rowid <= key; {
				end++
			}
		}
		if child == 0 {
			return nil, false
		}
		below = append(below, span{child, at, end})
		at = end
	}
	return below, true
}

// each yields chunks of an exchange, up to the first that is not as expected, and
// returns how many.
func (l *leaf) each(id int64, wanted []indexed, yield func(captures.Chunk) bool) (n int) {
	at := 0
	for _, want := range wanted {
		if at == l.cells {
			return n
		}
		rowid, values, ok := l.rowAt(at)
		if rowid != want.rowid { // others are between them
			at, _ = l.find(func(cell []byte) (bool, bool) {
				rowid, _, _ := parseRow(cell, l.maxRow())
				return rowid >= want.rowid, true
			})
			if at == l.cells {
				return n
			}
			rowid, values, ok = l.rowAt(at)
		}
		if !ok || rowid != want.rowid {
			return n
		}
		at++
		k, ok := values.chunk(want.seq, id)
		if !ok || !yield(k) {
			return n
		}
		n++
	}
	return n
}

// rowAt reads row i.
func (l *leaf) rowAt(i int) (rowid int64, values record, ok bool) {
	_, cell, ok := l.cell(i)
	if !ok {
		return 0, values, false
	}
	return parseRow(cell, l.maxRow())
}

// chunk reads a row of chunks whose payload is in it.
func (r *record) chunk(seq, id int64) (k captures.Chunk, ok bool) {
	r.null() // the number is the row's own
	k = captures.Chunk{Exchange: r.int(), Seq: r.size(math.MaxInt64), Dir: captures.Direction(r.size(1)), T: time.Duration(r.size(math.MaxInt64))}
	size := r.size(math.MaxInt64)
	r.null() // no blob
	k.Data = r.bytes()
	return k, !r.bad && k.Exchange == id && k.Seq == seq && int64(len(k.Data)) == size
}
