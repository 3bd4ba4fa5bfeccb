package btree

// parseRow reads a row of a table, of no more than maxSize bytes: with 0 it is the number
// alone, as inner pages have it.
func parseRow(cell []byte, maxSize int) (rowid int64, r record, ok bool) {
	size, n := uint64(0), 0
	if maxSize > 0 {
		if size, n = readVarint(cell); n == 0 {
			return 0, r, false
		}
	}
	v, m := readVarint(cell[n:])
	if m == 0 || maxSize == 0 {
		return int64(v), r, m > 0
	}
	if cell = cell[n+m:]; size > uint64(min(len(cell), maxSize)) {
		return int64(v), r, false // it goes on in pages of its own
	}
	r, ok = parseRecord(cell[:size:size])
	return int64(v), r, ok
}

// maxEntry is more than three numbers take, and less than what has pages of its own.
const maxEntry = 40

// parseEntry reads an entry of an index.
func parseEntry(cell []byte) (r record, ok bool) {
	size, n := readVarint(cell)
	if n == 0 || size > uint64(min(len(cell)-n, maxEntry)) {
		return r, false
	}
	return parseRecord(cell[n : n+int(size)])
}

// A record is a row's values: their types, each a number, and then their bytes.
type record struct {
	types, body []byte
	bad         bool // something was not as expected
}

func parseRecord(b []byte) (r record, ok bool) {
	head, n := readVarint(b)
	if n == 0 || head < uint64(n) || head > uint64(len(b)) {
		return r, false
	}
	return record{types: b[n:head], body: b[head:]}, true
}

// value returns the next value's type and bytes.
func (r *record) value() (typ uint64, b []byte) {
	typ, n := readVarint(r.types)
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
func (r *record) int() (v int64) {
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
func (r *record) size(limit int64) int64 {
	v := r.int()
	if v < 0 || v > limit {
		r.bad = true
	}
	return v
}

// null reads a NULL value.
func (r *record) null() {
	if typ, _ := r.value(); typ != 0 {
		r.bad = true
	}
}

// bytes reads bytes; a NULL value is nil.
func (r *record) bytes() []byte {
	typ, b := r.value()
	switch {
	case typ == 0:
		return nil
	case typ < 12 || typ%2 != 0:
		r.bad = true
	}
	return b
}

// readVarint reads a number: seven bits a byte, the most significant first, and of a
// ninth byte all eight. n is 0 where b ends too early.
func readVarint(b []byte) (v uint64, n int) {
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
