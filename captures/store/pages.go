package store

import (
	"context"
	"database/sql"
	"math"
	"slices"
	"strconv"
	"time"

	"unwire/captures"
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

// A run is some of an exchange's chunks that follow each other, in pages.
type run struct {
	id     int64
	wanted []indexed
	leaves []leaf
	all    bool // there are no more behind the wanted ones
}

// A leaf is a page of chunks with some that are wanted.
type leaf struct {
	treePage
	lo, hi int
}

// each yields the chunks up to the first that is left to a query: how many there were,
// and whether they are all that the exchange has.
func (r *run) each(yield func(captures.Chunk) bool) (n int, all bool) {
	for i := range r.leaves {
		l := &r.leaves[i]
		n += l.each(r.id, r.wanted[l.lo:l.hi], yield)
		if n < l.hi {
			return n, false
		}
	}
	return n, r.all && n == len(r.wanted)
}

// pageChunks finds the pages of some of an exchange's chunks from a sequence number on,
// or none where it cannot tell.
func (s *Store) pageChunks(ctx context.Context, id, from int64) (found run) {
	ctx, cancel := s.meter.bounded(ctx)
	defer cancel()
	conn, err := s.reader(ctx, maxHeadValue)
	if err != nil {
		return found
	}
	defer func() { _ = conn.Close() }()
	tx, err := conn.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return found
	}
	defer func() { _ = tx.Rollback() }()
	var roots []uint32
	if err := scan(ctx, tx, func(c *cursor) bool {
		roots = append(roots, uint32(c.small(math.MaxInt32)))
		return true
	}, `SELECT rootpage FROM sqlite_schema WHERE name IN ('chunks', 'chunks_exchange') ORDER BY name`); err != nil || len(roots) != 2 {
		return found
	}
	p := &pager{ctx: ctx, tx: tx}
	if !p.measure() {
		return found
	}
	wanted, all, ok := p.index(roots[1], id, from)
	if !ok {
		return found
	}
	for i := 1; i < len(wanted); i++ {
		if wanted[i].number <= wanted[i-1].number || wanted[i].seq <= wanted[i-1].seq {
			wanted, all = wanted[:i], false
		}
	}
	return run{id: id, wanted: wanted, leaves: p.leaves(roots[0], wanted), all: all}
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

// start is the place of the first entry of an exchange from a sequence number on.
func (p *treePage) start(id, from int64) (i int, ok bool) {
	return p.find(func(cell []byte) (bool, bool) {
		exchange, at, ok := indexEntry(cell)
		return exchange > id || exchange == id && at.seq >= from, ok
	})
}

// appendEntries appends what a leaf of the index has of an exchange.
func appendEntries(list []indexed, page *treePage, id, from int64) ([]indexed, bool) {
	first, ok := page.start(id, from)
	for i := first; ok && i < page.cells; i++ {
		_, cell, whole := page.cell(i)
		if !whole {
			return nil, false
		}
		exchange, at, whole := indexEntry(cell)
		if exchange != id || !whole {
			return list, whole && exchange > id
		}
		list = append(list, at)
	}
	return list, ok
}

// appendItems appends what an inner page of the index has of an exchange, and the pages
// that may have more.
func appendItems(items []item, page *treePage, id, from int64) ([]item, bool) {
	first, ok := page.start(id, from)
	if !ok {
		return nil, false
	}
	for i := first; i < page.cells; i++ {
		child, cell, ok := page.cell(i)
		if !ok || child == 0 {
			return nil, false
		}
		exchange, at, ok := indexEntry(cell)
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

// leaves finds the pages of chunks by their numbers, which ascend: of all, or the first.
func (p *pager) leaves(root uint32, wanted []indexed) (list []leaf) {
	if len(wanted) == 0 {
		return nil
	}
	level := []stretch{{root, 0, len(wanted)}}
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
		var below []stretch
		for _, s := range level {
			page, ok := p.parse(pages[s.page])
			switch {
			case ok && page.kind == innerTable && len(list) == 0:
				if below, ok = appendStretches(below, &page, s, wanted); !ok {
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

// appendStretches divides a stretch among the pages below the inner page of a table.
func appendStretches(below []stretch, page *treePage, s stretch, wanted []indexed) ([]stretch, bool) {
	for at := s.lo; at < s.hi; {
		number := wanted[at].number
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
			for end = at + 1; end < s.hi && wanted[end].number <= key; {
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

// each yields chunks of an exchange, up to the first that is not as expected, and
// returns how many.
func (l *leaf) each(id int64, wanted []indexed, yield func(captures.Chunk) bool) (n int) {
	at := 0
	for _, want := range wanted {
		if at == l.cells {
			return n
		}
		number, values, ok := l.row(at)
		if number != want.number { // others are between them
			at, _ = l.find(func(cell []byte) (bool, bool) {
				number, _, _ := row(cell, l.most())
				return number >= want.number, true
			})
			if at == l.cells {
				return n
			}
			number, values, ok = l.row(at)
		}
		if !ok || number != want.number {
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

// row takes row i apart.
func (l *leaf) row(i int) (number int64, values tuple, ok bool) {
	_, cell, ok := l.cell(i)
	if !ok {
		return 0, values, false
	}
	return row(cell, l.most())
}

// chunk reads a row of chunks whose payload is in it.
func (r *tuple) chunk(seq, id int64) (k captures.Chunk, ok bool) {
	r.null() // the number is the row's own
	k = captures.Chunk{Exchange: r.int(), Seq: r.size(math.MaxInt64), Dir: captures.Direction(r.size(1)), T: time.Duration(r.size(math.MaxInt64))}
	size := r.size(math.MaxInt64)
	r.null() // no blob
	k.Data = r.bytes()
	return k, !r.bad && k.Exchange == id && k.Seq == seq && int64(len(k.Data)) == size
}
