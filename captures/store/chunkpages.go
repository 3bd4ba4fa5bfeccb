package store

import (
	"context"
	"database/sql"
	"math"
	"strconv"

	"unwire/captures"
	"unwire/captures/store/internal/btree"
)

const (
	// pageFirst is how many rows a query reads first: most exchanges have no more.
	pageFirst = 64

	// pageSmall is up to which average size of chunks, in bytes, their pages are read.
	pageSmall = 1024
)

// pageChunks finds the pages of some of an exchange's chunks from a sequence number on,
// or none where it cannot, and returns what yields them, as btree.Find does.
func (s *Store) pageChunks(ctx context.Context, id, from int64) (each func(yield func(captures.Chunk) bool) (n int, all bool)) {
	ctx, cancel := s.meter.bounded(ctx)
	defer cancel()
	conn, err := s.reader(ctx, maxHeadValue)
	if err != nil {
		return noPages
	}
	defer func() { _ = conn.Close() }()
	tx, err := conn.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return noPages
	}
	defer func() { _ = tx.Rollback() }()

	var roots []uint32
	if err := scan(ctx, tx, func(c *rowValues) bool {
		roots = append(roots, uint32(c.small(math.MaxInt32)))
		return true
	}, `SELECT rootpage FROM sqlite_schema WHERE name IN ('chunks', 'chunks_exchange') ORDER BY name`); err != nil || len(roots) != 2 {
		return noPages
	}
	return btree.Find(func(numbers []uint32) (map[uint32][]byte, bool) {
		return fetchPages(ctx, tx, numbers)
	}, roots[0], roots[1], id, from)
}

// noPages leaves all chunks to a query.
func noPages(func(captures.Chunk) bool) (n int, all bool) { return 0, false }

// fetchPages reads pages of the file by their numbers.
func fetchPages(ctx context.Context, tx *sql.Tx, numbers []uint32) (pages map[uint32][]byte, ok bool) {
	query := []byte(`SELECT pgno, data FROM sqlite_dbpage WHERE pgno IN (`)
	for i, n := range numbers {
		if i > 0 {
			query = append(query, ',')
		}
		query = strconv.AppendUint(query, uint64(n), 10)
	}
	pages = make(map[uint32][]byte, len(numbers))
	err := scan(ctx, tx, func(c *rowValues) bool {
		n, data := c.small(math.MaxUint32), c.bytes()
		pages[uint32(n)] = data
		return c.err == nil
	}, string(append(query, ')')))
	return pages, err == nil
}
