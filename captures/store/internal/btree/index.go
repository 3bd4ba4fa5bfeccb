package btree

import "slices"

// An indexed chunk is an entry of the index: a chunk's sequence number and its row.
type indexed struct{ seq, rowid int64 }

// An item is an entry of the index, or a page of entries that is still to be read.
type item struct {
	page uint32 // 0 for an entry
	indexed
}

// index returns the entries of an exchange's chunks from a sequence number on, in order,
// and whether these are all. It descends the tree level by level, so that all pages of a
// level are fetched by one query.
func (p *pager) index(root uint32, id, from int64) (list []indexed, all, ok bool) {
	items := []item{{page: root}}
	all = true
	for range maxTreeDepth {
		var wanted []uint32
		for i, it := range items {
			if it.page == 0 {
				continue
			}
			if len(wanted) == pageLeaves {
				items, all = items[:i], false
				break
			}
			wanted = append(wanted, it.page)
		}
		pages, ok := p.fetch(wanted)
		if !ok {
			return nil, false, false
		}
		list = make([]indexed, 0, len(wanted)*p.size/12) // more than there can be
		var below []item
		for _, it := range items {
			if it.page == 0 {
				list, below = append(list, it.indexed), append(below, it)
				continue
			}
			page, ok := p.parse(pages[it.page])
			switch {
			case ok && page.kind == leafIndex:
				list, ok = appendEntries(list, &page, id, from)
			case ok && page.kind == innerIndex:
				below, ok = appendItems(below, &page, id, from)
			default:
				ok = false
			}
			if !ok {
				return nil, false, false
			}
		}
		if !slices.ContainsFunc(below, func(it item) bool { return it.page != 0 }) {
			return list, all, true
		}
		items = below
	}
	return nil, false, false
}

// firstEntry returns the position in the page of the first entry of an exchange from a
// sequence number on.
func (p *treePage) firstEntry(id, from int64) (i int, ok bool) {
	return p.find(func(cell []byte) (bool, bool) {
		exchange, at, ok := parseIndexEntry(cell)
		return exchange > id || exchange == id && at.seq >= from, ok
	})
}

// appendEntries appends the entries that a leaf page of the index has of an exchange.
func appendEntries(list []indexed, page *treePage, id, from int64) ([]indexed, bool) {
	first, ok := page.firstEntry(id, from)
	for i := first; ok && i < page.cells; i++ {
		_, cell, whole := page.cell(i)
		if !whole {
			return nil, false
		}
		exchange, at, whole := parseIndexEntry(cell)
		if exchange != id || !whole {
			return list, whole && exchange > id
		}
		list = append(list, at)
	}
	return list, ok
}

// appendItems appends the entries that an inner page of the index has of an exchange, and
// the child pages that may have more.
func appendItems(items []item, page *treePage, id, from int64) ([]item, bool) {
	first, ok := page.firstEntry(id, from)
	if !ok {
		return nil, false
	}
	for i := first; i < page.cells; i++ {
		child, cell, ok := page.cell(i)
		if !ok || child == 0 {
			return nil, false
		}
		exchange, at, ok := parseIndexEntry(cell)
		if !ok {
			return nil, false
		}
		items = append(items, item{page: child})
		if exchange != id {
			return items, exchange > id
		}
		items = append(items, item{indexed: at})
	}
	return append(items, item{page: page.right()}), page.right() != 0
}

// parseIndexEntry reads an entry of chunks_exchange: the exchange, and where its chunk is.
func parseIndexEntry(cell []byte) (exchange int64, at indexed, ok bool) {
	r, ok := parseEntry(cell)
	if !ok {
		return 0, at, false
	}
	exchange = r.int()
	at = indexed{seq: r.int(), rowid: r.int()}
	return exchange, at, !r.bad
}
