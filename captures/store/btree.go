package store

import (
	"encoding/binary"
	"sort"
)

// A treePage is a page of one of SQLite's b-trees: a header, the offsets of its cells
// in the order of their keys, and somewhere behind them the cells.
//
//	kind     1 byte   see below
//	          2 bytes  of free room
//	cells    2 bytes
//	          3 bytes  of the cells' beginning, and of free room
//	right    4 bytes  the child behind all cells, of an inner page alone
//	offsets  2 bytes  each
//
// Limits: it reads what SQLite has read for it, which may be of any making: whatever
// is not as expected has ok false, and is SQLite's own to judge.
// Source: https://www.sqlite.org/fileformat2.html#b_tree_pages
type treePage struct {
	data  []byte // without what is reserved at its end
	kind  byte
	cells int
}

const (
	innerIndex = 2
	innerTable = 5
	leafIndex  = 10
	leafTable  = 13
)

func parseTreePage(data []byte) (p treePage, ok bool) {
	if len(data) < 12 {
		return p, false
	}
	p = treePage{data: data, kind: data[0], cells: int(binary.BigEndian.Uint16(data[3:]))}
	switch p.kind {
	case innerIndex, innerTable, leafIndex, leafTable:
		return p, p.offsets()+2*p.cells <= len(data)
	}
	return p, false
}

func (p *treePage) inner() bool { return p.kind == innerIndex || p.kind == innerTable }

// offsets is where those of the cells stand.
func (p *treePage) offsets() int {
	if p.inner() {
		return 12
	}
	return 8
}

// right is the last child of an inner page.
func (p *treePage) right() uint32 { return binary.BigEndian.Uint32(p.data[8:]) }

// cell returns the page from the beginning of cell i on, and behind the number of the
// child before it where it has one.
func (p *treePage) cell(i int) (child uint32, cell []byte, ok bool) {
	at := int(binary.BigEndian.Uint16(p.data[p.offsets()+2*i:]))
	if at < p.offsets()+2*p.cells || at+4 > len(p.data) {
		return 0, nil, false
	}
	if p.inner() {
		return binary.BigEndian.Uint32(p.data[at:]), p.data[at+4:], true
	}
	return 0, p.data[at:], true
}

// find returns the first cell for which is is true: it is for all behind that one.
func (p *treePage) find(is func(cell []byte) (yes, ok bool)) (i int, ok bool) {
	ok = true
	i = sort.Search(p.cells, func(i int) bool {
		_, cell, whole := p.cell(i)
		if !whole {
			ok = false
			return true
		}
		yes, whole := is(cell)
		ok = ok && whole
		return yes
	})
	return i, ok
}

// most is the size of the largest row that has no pages of its own; 0 of an inner page.
func (p *treePage) most() int {
	if p.inner() {
		return 0
	}
	return len(p.data) - 35
}

// row takes a table's row apart, of no more than most bytes: with 0 it is the number
// alone, as inner pages have it.
func row(cell []byte, most int) (number int64, r tuple, ok bool) {
	size, n := uint64(0), 0
	if most > 0 {
		if size, n = treeVarint(cell); n == 0 {
			return 0, r, false
		}
	}
	v, m := treeVarint(cell[n:])
	if m == 0 || most == 0 {
		return int64(v), r, m > 0
	}
	if cell = cell[n+m:]; size > uint64(min(len(cell), most)) {
		return int64(v), r, false // it goes on in pages of its own
	}
	r, ok = parseTuple(cell[:size:size])
	return int64(v), r, ok
}

// maxEntry is more than three numbers take, and less than what has pages of its own.
const maxEntry = 40

// entry takes an index's entry apart.
func entry(cell []byte) (r tuple, ok bool) {
	size, n := treeVarint(cell)
	if n == 0 || size > uint64(min(len(cell)-n, maxEntry)) {
		return r, false
	}
	return parseTuple(cell[n : n+int(size)])
}

// A tuple is a row's values: their types, each a number, and then their bytes.
type tuple struct {
	types, body []byte
	bad         bool // something was not as expected
}

func parseTuple(b []byte) (r tuple, ok bool) {
	head, n := treeVarint(b)
	if n == 0 || head < uint64(n) || head > uint64(len(b)) {
		return r, false
	}
	return tuple{types: b[n:head], body: b[head:]}, true
}

// value returns the next value's type and bytes.
func (r *tuple) value() (typ uint64, b []byte) {
	typ, n := treeVarint(r.types)
	if n == 0 {
		r.bad = true
		return 0, nil
	}
	r.types = r.types[n:]
	size := uint64(0)
	switch {
	case typ >= 12:
		size = (typ - 12) / 2
	default:
		size = uint64([12]uint8{0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0}[typ])
	}
	if size > uint64(len(r.body)) {
		r.bad = true
		return 0, nil
	}
	b, r.body = r.body[:size:size], r.body[size:]
	return typ, b
}

// int reads an integer.
func (r *tuple) int() (v int64) {
	switch typ, b := r.value(); {
	case typ >= 1 && typ <= 6 && len(b) > 0:
		v = int64(int8(b[0]))
		for _, c := range b[1:] {
			v = v<<8 | int64(c)
		}
	case typ == 8:
	case typ == 9:
		v = 1
	default:
		r.bad = true
	}
	return v
}

// size reads an integer that cannot be negative, and is no more than limit.
func (r *tuple) size(limit int64) int64 {
	v := r.int()
	if v < 0 || v > limit {
		r.bad = true
	}
	return v
}

// null reads a value that is none.
func (r *tuple) null() {
	if typ, _ := r.value(); typ != 0 {
		r.bad = true
	}
}

// bytes reads bytes, nil for a value that is none.
func (r *tuple) bytes() []byte {
	typ, b := r.value()
	switch {
	case typ == 0:
		return nil
	case typ < 12 || typ%2 != 0:
		r.bad = true
	}
	return b
}

// treeVarint reads a number: seven bits a byte, the most significant first, and of a
// ninth byte all eight. n is 0 where b ends too early.
func treeVarint(b []byte) (v uint64, n int) {
	for i, c := range b[:min(len(b), 9)] {
		if i == 8 {
			return v<<8 | uint64(c), 9
		}
		if v = v<<7 | uint64(c&0x7f); c < 0x80 {
			return v, i + 1
		}
	}
	return 0, 0
}
