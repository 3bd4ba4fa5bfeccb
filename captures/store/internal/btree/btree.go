// Package btree takes the small chunks of an exchange out of the pages of a capture
// file's b-trees: the caller has SQLite read the pages, with all that it does for a
// consistent view of a file that is being written, and the rows are decoded here. A row
// through a query costs a microsecond and several allocations, which for the frames of
// a stream is more than all that is done with them.
//
// Whatever is not as expected is left to a query, which says what is wrong with it, and
// so are payloads that have pages of their own or are stored by their hash.
//
// A page of the index leads to leaf pages with chunks; a record is the values of a
// row.
package btree

import "unwire/captures"

const (
	// pageLeaves is how many pages of the index are read at a time.
	pageLeaves = 48

	// pageTotal is how many bytes of pages are read at a time.
	pageTotal = 4 << 20

	maxTreeDepth = 12
)

// A pager reads pages of one state of the file.
type pager struct {
	fetch func(numbers []uint32) (pages map[uint32][]byte, ok bool)

	// size is that of a page, and usable what of it is not reserved.
	size   int
	usable int
}

// A run is some of an exchange's chunks that follow each other, in pages.
type run struct {
	exchange int64
	wanted   []indexed
	leaves   []leaf

	// all is true if no chunks follow the wanted ones.
	all bool
}

// each yields the chunks up to the first that is left to a query: how many there were,
// and whether they are all that the exchange has.
func (r *run) each(yield func(captures.Chunk) bool) (n int, all bool) {
	for i := range r.leaves {
		l := &r.leaves[i]
		n += l.each(r.exchange, r.wanted[l.lo:l.hi], yield)
		if n < l.hi {
			return n, false
		}
	}
	return n, r.all && n == len(r.wanted)
}

// Find finds the pages of some of an exchange's chunks from a sequence number on, or
// none where it cannot. What it returns yields the chunks of these pages up to the first
// that is left to a query; it returns how many there were, and whether they are all that
// the exchange has. The table of chunks and its index by exchange and sequence
// number are given by their root pages; fetch reads pages by their numbers.
func Find(fetch func(numbers []uint32) (pages map[uint32][]byte, ok bool), table, index uint32, exchange, from int64) (each func(yield func(captures.Chunk) bool) (n int, all bool)) {
	p := &pager{fetch: fetch}
	if !p.measure() {
		return new(run).each
	}
	wanted, all, ok := p.index(index, exchange, from)
	if !ok {
		return new(run).each
	}

	// The pages of the table are searched by ascending numbers.
	for i := 1; i < len(wanted); i++ {
		if wanted[i].rowid <= wanted[i-1].rowid || wanted[i].seq <= wanted[i-1].seq {
			wanted, all = wanted[:i], false
		}
	}
	found := &run{exchange: exchange, wanted: wanted, leaves: p.leaves(table, wanted), all: all}
	return found.each
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

// parse reads the header of a page.
func (p *pager) parse(data []byte) (treePage, bool) {
	if len(data) != p.size || p.size == 0 {
		return treePage{}, false
	}
	return parseTreePage(data[:p.usable])
}
