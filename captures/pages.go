package captures

import (
	"context"
	"database/sql"
	"math"
	"strconv"
	"time"
)

// Small chunks are read page by page: SQLite hands out pages, with all that it does
// for a consistent view of a file that is being written, and their rows are taken out
// here. A row through a query costs a microsecond and several allocations, which for
// the frames of a stream is more than all that is done with them.
//
// Whatever is not as expected is left to a query, which says what is wrong with it, and
// so are payloads that have pages of their own or are stored by their hash.

const (
	pageFirst    = 64      // rows that a query reads first: most exchanges have no more
	pageLeaves   = 48      // pages of the index that are read at a time
	pageTotal    = 4 << 20 // bytes of pages that are read at a time
	pageSmall    = 1024    // bytes of a chunk, on average, up to which pages are read
	maxTreeDepth = 12
)

// A pager reads pages of one state of the file.
type pager struct {
	ctx    context.Context
	tx     *sql.Tx
	size   int // of a page
	usable int // bytes of it
}

// An indexed chunk is what the index of chunks says of one.
type indexed struct{ seq, number int64 }

// pageChunks returns some of an exchange's chunks from a sequence number on, and
// whether those are all that there are. It returns none where it cannot tell.
func (s *Store) pageChunks(ctx context.Context, id, from int64) (list []Chunk, all bool) {
	conn, err := s.reader(ctx)
	if err != nil {
		return nil, false
	}
	defer func() { _ = conn.Close() }()
	tx, err := conn.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, false
	}
	defer func() { _ = tx.Rollback() }()
	var roots []uint32
	if err := scan(ctx, tx, func(c *cursor) bool {
		roots = append(roots, uint32(c.small(math.MaxInt32)))
		return true
	}, `SELECT rootpage FROM sqlite_schema WHERE name IN ('chunks', 'chunks_exchange') ORDER BY name`); err != nil || len(roots) != 2 {
		return nil, false
	}
	p := &pager{ctx: ctx, tx: tx}
	if !p.measure() {
		return nil, false
	}
	entries, all, ok := p.index(roots[1], id, from)
	if !ok {
		return nil, false
	}
	list = p.rows(roots[0], id, entries)
	return list, all && len(list) == len(entries)
}

// measure reads how large pages are, and what of them is used.
func (p *pager) measure() bool {
	pages, ok := p.fetch([]uint32{1})
	if first := pages[1]; ok && len(first) >= 512 {
		p.size, p.usable = len(first), len(first)-int(first[20])
		return p.usable >= 480
	}
	return false
}

// fetch reads pages.
func (p *pager) fetch(numbers []uint32) (pages map[uint32][]byte, ok bool) {
	query := []byte(`SELECT pgno, data FROM sqlite_dbpage WHERE pgno IN (`)
	for i, n := range numbers {
		if i > 0 {
			query = append(query, ',')
		}
		query = strconv.AppendUint(query, uint64(n), 10)
	}
	pages = make(map[uint32][]byte, len(numbers))
	err := scan(p.ctx, p.tx, func(c *cursor) bool {
		n, data := c.small(math.MaxUint32), c.bytes()
		pages[uint32(n)] = data
		return c.err == nil && (p.size == 0 || len(data) == p.size)
	}, string(append(query, ')')))
	return pages, err == nil
}

// parse takes a page apart.
func (p *pager) parse(data []byte) (treePage, bool) {
	if len(data) != p.size || p.size == 0 {
		return treePage{}, false
	}
	return parseTreePage(data[:p.usable])
}

// An item is a place in the index: an entry, or a page of them that is still to be read.
type item struct {
	page uint32 // 0 for an entry
	indexed
}

// index reads what the index says of an exchange's chunks from a sequence number on, in
// order, and whether that is all. It goes down the tree level by level, so that the
// pages of one are read together.
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
		if len(wanted) == 0 {
			for _, it := range items {
				list = append(list, it.indexed)
			}
			return list, all, true
		}
		pages, ok := p.fetch(wanted)
		if !ok {
			return nil, false, false
		}
		var below []item
		for _, it := range items {
			if it.page == 0 {
				below = append(below, it)
				continue
			}
			page, ok := p.parse(pages[it.page])
			if !ok {
				return nil, false, false
			}
			if below, ok = appendItems(below, &page, id, from); !ok {
				return nil, false, false
			}
		}
		items = below
	}
	return nil, false, false
}

// appendItems appends what a page of the index has of an exchange.
func appendItems(items []item, page *treePage, id, from int64) ([]item, bool) {
	if page.kind != innerIndex && page.kind != leafIndex {
		return nil, false
	}
	first, ok := page.find(func(cell []byte) (bool, bool) {
		exchange, at, ok := indexEntry(cell)
		return exchange > id || exchange == id && at.seq >= from, ok
	})
	if !ok {
		return nil, false
	}
	for i := first; i < page.cells; i++ {
		child, cell, ok := page.cell(i)
		exchange, at, whole := indexEntry(cell)
		if !ok || !whole || page.inner() && child == 0 {
			return nil, false
		}
		if page.inner() {
			items = append(items, item{page: child})
		}
		if exchange != id {
			return items, exchange > id
		}
		items = append(items, item{indexed: at})
	}
	if page.inner() {
		items = append(items, item{page: page.right()})
	}
	return items, !page.inner() || page.right() != 0
}

// indexEntry reads an entry of chunks_exchange: the exchange, and where its chunk is.
func indexEntry(cell []byte) (exchange int64, at indexed, ok bool) {
	r, ok := entry(cell)
	if !ok {
		return 0, at, false
	}
	exchange = r.int()
	at = indexed{seq: r.int(), number: r.int()}
	return exchange, at, !r.bad
}

// A stretch is some of the chunks that are wanted, and the page that they are below.
type stretch struct {
	page   uint32
	lo, hi int
}

// rows reads chunks by their numbers, up to the first that is left to a query.
func (p *pager) rows(root uint32, id int64, entries []indexed) (list []Chunk) {
	for i := range entries {
		if i > 0 && (entries[i].number <= entries[i-1].number || entries[i].seq <= entries[i-1].seq) {
			entries = entries[:i]
			break
		}
	}
	level := []stretch{{root, 0, len(entries)}}
	for range maxTreeDepth {
		if limit := max(pageTotal/p.size, 16); len(level) > limit {
			level = level[:limit]
		}
		wanted := make([]uint32, len(level))
		for i, s := range level {
			wanted[i] = s.page
		}
		pages, ok := p.fetch(wanted)
		if !ok {
			return nil
		}
		var below []stretch
		for _, s := range level {
			page, ok := p.parse(pages[s.page])
			switch {
			case ok && page.kind == innerTable:
				if below, ok = appendStretches(below, &page, s, entries); !ok {
					return nil
				}
			case ok && page.kind == leafTable && len(below) == 0:
				if list == nil {
					list = make([]Chunk, 0, level[len(level)-1].hi)
				}
				if list = appendChunks(list, &page, id, entries[s.lo:s.hi]); len(list) < s.hi {
					return list
				}
			default:
				return list
			}
		}
		if len(below) == 0 {
			return list
		}
		if level = below; list != nil {
			return nil // leaves are all on one level
		}
	}
	return nil
}

// appendStretches divides a stretch among the pages below the inner page of a table.
func appendStretches(below []stretch, page *treePage, s stretch, entries []indexed) ([]stretch, bool) {
	for at := s.lo; at < s.hi; {
		number := entries[at].number
		i, ok := page.find(func(cell []byte) (bool, bool) {
			key, _, ok := row(cell, 0)
			return key >= number, ok
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
			key, _, _ := row(cell, 0)
			for end = at + 1; end < s.hi && entries[end].number <= key; {
				end++
			}
		}
		if child == 0 {
			return nil, false
		}
		below = append(below, stretch{child, at, end})
		at = end
	}
	return below, true
}

// appendChunks appends the chunks of an exchange in the leaf of a table, up to the
// first that is not as expected.
func appendChunks(list []Chunk, page *treePage, id int64, entries []indexed) []Chunk {
	next := 0
	for _, want := range entries {
		at := func(i int) (number int64, r tuple, ok bool) {
			if _, cell, whole := page.cell(i); whole {
				return row(cell, page.most())
			}
			return 0, r, false
		}
		if next >= page.cells {
			return list
		}
		number, r, ok := at(next)
		if number != want.number {
			i, _ := page.find(func(cell []byte) (bool, bool) {
				number, _, _ := row(cell, page.most())
				return number >= want.number, true
			})
			if i == page.cells {
				return list
			}
			next = i
			number, r, ok = at(next)
		}
		if !ok || number != want.number {
			return list
		}
		next++
		k, ok := r.chunk(want.seq, id)
		if !ok {
			return list
		}
		list = append(list, k)
	}
	return list
}

// chunk reads a row of chunks whose payload is in it.
func (r *tuple) chunk(seq, id int64) (k Chunk, ok bool) {
	r.null() // the number is the row's own
	k = Chunk{Exchange: r.int(), Seq: r.size(math.MaxInt64), Dir: Direction(r.size(1)), T: time.Duration(r.size(math.MaxInt64))}
	size := r.size(math.MaxInt64)
	r.null() // no blob
	k.Data = r.bytes()
	return k, !r.bad && k.Exchange == id && k.Seq == seq && int64(len(k.Data)) == size
}
