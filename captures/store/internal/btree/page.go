package btree

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

// maxRow is the size of the largest row that has no pages of its own; 0 of an inner page.
func (p *treePage) maxRow() int {
	if p.inner() {
		return 0
	}
	return len(p.data) - 35
}
