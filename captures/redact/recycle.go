package redact

// newFilter returns an empty filter, in the memory of a recycled one if there is any.
func (r *Redactor) newFilter() *BodyFilter {
	if b, ok := r.filters.Get().(*BodyFilter); ok {
		return b
	}
	b := &BodyFilter{r: r, scan: scanner{r: r, syntax: r.syntax}}
	b.scan.hit = b.replace
	b.scan.split = b.scan.hit
	return b
}

const (
	// maxRecycledBuffer and maxRecycledChunks limit the memory that a recycled filter keeps: for bytes, in
	// bytes, and for pending chunks, in chunks.
	maxRecycledBuffer = 4 << 10
	maxRecycledChunks = 64
)

// Recycle lets the Redactor use the filter's memory for further filters. The filter must have been closed, and
// nobody may use it afterwards. Small exchanges would otherwise spend more on this memory than on the search.
func (b *BodyFilter) Recycle() {
	empty := BodyFilter{r: b.r, scan: scanner{r: b.r, syntax: b.r.syntax, hit: b.scan.hit, split: b.scan.split}}
	if cap(b.scan.buf) <= maxRecycledBuffer {
		empty.scan.buf = b.scan.buf[:0]
	}
	if cap(b.pending) <= maxRecycledChunks {
		clear(b.pending)
		empty.pending = b.pending[:0]
	}
	*b = empty
	b.r.filters.Put(b)
}
