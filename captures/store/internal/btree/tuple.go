package btree

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
