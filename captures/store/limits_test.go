package store

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"unwire/captures"
	"unwire/captures/internal/require"
	"unwire/captures/redact"
	"unwire/captures/store/internal/payload"
)

// smallExpansion are limits that tests reach with little work.
func smallExpansion() Limits { return Limits{Bytes: 8 << 20} }

// openSmall opens a forged capture with small limits.
func openSmall(t testing.TB, path string) *Store {
	t.Helper()
	s := require.Value(Open(path, ReadOptions{Limits: smallExpansion()}))(t)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// repeatBlob has an exchange name one payload of size zero bytes n times more.
func repeatBlob(t testing.TB, path string, size, n int) {
	t.Helper()
	packed := require.Value(payload.NewPacker())(t)
	_, data := packed.Pack(make([]byte, size))
	db := require.Value(sql.Open("sqlite", path))(t)
	defer func() { require.NoError(t, db.Close()) }()
	for _, q := range []struct {
		text string
		args []any
	}{
		{`INSERT INTO blobs (id, sha256, codec, size, data) VALUES (99, x'00', 1, ?, ?)`, []any{size, data}},
		{`WITH RECURSIVE i(k) AS (SELECT 0 UNION ALL SELECT k+1 FROM i WHERE k < ?)
			INSERT INTO chunks (n, exchange, seq, dir, t_ns, size, blob) SELECT 1000+k, 1, 1000+k, 1, 0, ?, 99 FROM i`, []any{n - 1, size}},
	} {
		if _, err := db.Exec(q.text, q.args...); err != nil {
			t.Fatal(err)
		}
	}
}

// drain reads the chunks of an exchange until the end or an error.
func drain(ctx context.Context, s *Store, id int64) (chunks, size int64, err error) {
	for c, err := range s.Chunks(ctx, id, 0) {
		if err != nil {
			return chunks, size, err
		}
		chunks++
		size += int64(len(c.Data))
	}
	return chunks, size, nil
}

// within runs do and fails where it has not returned after a while.
func within(t testing.TB, d time.Duration, do func(ctx context.Context)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		do(ctx)
	}()
	select {
	case <-done:
	case <-time.After(d):
		t.Error("did not end")
		cancel()
		<-done
	}
}

// The last number that a chunk can have is the last chunk, at the end of a page, too.
func TestLastSequenceNumberEndsAnExchange(t *testing.T) {
	for name, chunks := range map[string][]int{
		"rows of a first page": slices.Repeat([]int{10}, firstRows),
		"rows of two pages":    slices.Repeat([]int{2000}, firstRows+chunkRows),
		"bytes of a page":      {10, pageBytes},
		"small":                slices.Repeat([]int{10}, 5000),
	} {
		path := filepath.Join(t.TempDir(), "a.uwc")
		s := require.Value(Create(path, Options{KeepSecrets: true}))(t)
		r := require.Value(s.Begin(captures.Exchange{}))(t)
		for _, size := range chunks {
			r.Chunk(captures.Down, make([]byte, size))
		}
		r.End(captures.Complete, "")
		require.NoError(t, s.Close())
		asOlderChunks(t, path)
		alter(t, path, fmt.Sprintf("UPDATE chunks SET seq = %d WHERE seq = (SELECT max(seq) FROM chunks)", math.MaxInt64))
		forged := require.Value(Open(path, ReadOptions{}))(t)
		within(t, 20*time.Second, func(ctx context.Context) {
			n := 0
			for _, err := range forged.Chunks(ctx, 1, 0) {
				if n++; err != nil || n > len(chunks) {
					t.Errorf("%s: chunk %d, %v", name, n, err)
					return
				}
			}
			if n != len(chunks) {
				t.Errorf("%s: %d chunks", name, n)
			}
		})
		require.NoError(t, forged.Close())
	}
}

// A payload that is stored once and named by many chunks is handed out until
// the limit, with the error that says so; other exchanges can still be read.
func TestExpansionIsLimited(t *testing.T) {
	path := record(t, "hello")
	repeatBlob(t, path, 1<<20, 500)
	s := openSmall(t, path)
	for range 3 { // what was counted once is not counted again
		n, size, err := drain(t.Context(), s, 1)
		limit, ok := errors.AsType[*LimitError](err)
		if !ok || !errors.Is(err, captures.ErrDamaged) || limit.Exchange != 1 || size > 4<<20 || n < 4 {
			t.Fatalf("%d chunks, %d bytes, %v", n, size, err)
		}
		for _, want := range []string{path, "exchange 1", "4 MiB"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("no %q in %v", want, err)
			}
		}
	}

	// By default, one exchange may have a message of the largest size, or half of what a file of its size may.
	n, _, err := drain(t.Context(), require.Value(Open(path, ReadOptions{}))(t), 1)
	if limit, ok := errors.AsType[*LimitError](err); !ok || limit.Exchange != 1 || n < minExchangeLimit>>20-1 || n > minExchangeLimit>>20 {
		t.Errorf("by default: %d chunks, %v", n, err)
	}
	if n, _, err := drain(t.Context(), require.Value(Open(path, ReadOptions{Limits: Limits{Bytes: 2 << 30}}))(t), 1); err != nil || n < 500 {
		t.Errorf("2 GiB: %d chunks, %v", n, err)
	}
}

// Exchanges that are each within the limit of one exceed that of the capture
// together, however often each is read.
func TestExpansionOfAllExchanges(t *testing.T) {
	path := record(t, "hello")
	repeatBlob(t, path, 1<<20, 3)
	alter(t, path,
		`WITH RECURSIVE i(k) AS (SELECT 2 UNION ALL SELECT k+1 FROM i WHERE k < 20)
		INSERT INTO exchanges SELECT k, protocol, method, url, http, status, request_headers, request_trailers, response_headers, response_trailers,
			started_ns, duration_ns, client, server, process, tls, outcome, error, bytes_up, bytes_down, source FROM i, exchanges WHERE id = 1`,
		`INSERT INTO chunks (n, exchange, seq, dir, t_ns, size, blob, data) SELECT c.n + 10000*e.id, e.id, seq, dir, t_ns, size, blob, data FROM chunks c, exchanges e WHERE e.id > 1`)
	s := openSmall(t, path)
	var read, total int64
	var last error
	for range 3 {
		for id := int64(1); id <= 20; id++ {
			_, size, err := drain(t.Context(), s, id)
			if err == nil {
				read++
				total = max(total, size*read)
			} else {
				last = err
			}
		}
	}
	if limit, ok := errors.AsType[*LimitError](last); !ok || limit.Exchange != 0 || read < 3 || read > 9 {
		t.Errorf("%d exchanges were read, %v", read, last)
	}
}

// What is honest is read whatever it amounts to in many passes.
func TestManyPassesAreNotLimited(t *testing.T) {
	path := record(t, "hello")
	repeatBlob(t, path, 1<<20, 3)
	s := openSmall(t, path)
	for range 20 {
		if _, size, err := drain(t.Context(), s, 1); err != nil || size < 3<<20 {
			t.Fatalf("%d bytes, %v", size, err)
		}
		for _, err := range s.Exchanges(t.Context()) {
			require.NoError(t, err)
		}
	}
}

// forgePages overwrites pages of a table's tree: each child of its root becomes
// the same one.
func forgePages(t testing.TB, path, name string) {
	t.Helper()
	db := require.Value(sql.Open("sqlite", path))(t)
	var root, size int64
	require.NoError(t, db.QueryRow(`SELECT rootpage FROM sqlite_schema WHERE name = ?`, name).Scan(&root))
	require.NoError(t, db.QueryRow(`PRAGMA page_size`).Scan(&size))
	require.NoError(t, db.Close())
	file := require.Value(os.ReadFile(path))(t)
	page := file[(root-1)*size : root*size]
	const innerIndex, innerTable, offsets = 2, 5, 12
	cells := int(binary.BigEndian.Uint16(page[3:]))
	if page[0] != innerIndex && page[0] != innerTable || cells < 1 {
		t.Fatalf("%s has no inner root with %d cells", name, cells)
	}
	cell := func(i int) []byte { return page[binary.BigEndian.Uint16(page[offsets+2*i:]):] }
	first := binary.BigEndian.Uint32(cell(0))
	for i := range cells {
		binary.BigEndian.PutUint32(cell(i), first)
	}
	binary.BigEndian.PutUint32(page[8:], first)
	require.NoError(t, os.WriteFile(path, file, 0o600))
}

// Trees whose pages come again and again yield what is in order, and an error.
func TestRepeatedPagesAreDamage(t *testing.T) {
	for _, name := range []string{"exchanges", "chunks", "chunks_exchange", "segments", "segments_exchange", "events"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "a.uwc")
			s := require.Value(Create(path, Options{}))(t)
			for range map[bool]int{false: 400, true: 1500}[name == "segments_exchange"] {
				r := require.Value(s.Begin(captures.Exchange{Method: "GET", URL: "https://h/" + strings.Repeat("x", 200)}))(t)
				for range 20 {
					r.Chunk(captures.Down, bytes.Repeat([]byte("y"), 40))
				}
				r.End(captures.Complete, "")
			}
			require.NoError(t, s.Close())
			if strings.HasPrefix(name, "chunks") {
				asOlderChunks(t, path)
			}
			forgePages(t, path, name)
			r := openSmall(t, path)
			within(t, 30*time.Second, func(ctx context.Context) {
				last, n := int64(math.MinInt64), 0
				for e, err := range r.Exchanges(ctx) {
					if err != nil {
						if !errors.Is(err, captures.ErrDamaged) {
							t.Error(err)
						}
						break
					}
					if e.ID <= last {
						t.Fatalf("exchange %d behind %d", e.ID, last)
					}
					last = e.ID
					if _, _, err := drain(ctx, r, e.ID); err != nil && !errors.Is(err, captures.ErrDamaged) {
						t.Error(err)
					}
					n++
				}
				for _, err := range r.Listing(ctx, 1) {
					if err != nil && !errors.Is(err, captures.ErrDamaged) {
						t.Error(err)
					}
				}
				follow, stop := context.WithTimeout(ctx, 2*time.Second)
				defer stop()
				seen := int64(0)
				for ev, err := range r.Follow(follow, time.Millisecond) {
					if err != nil {
						break
					}
					if ev.N <= seen {
						t.Fatalf("event %d behind %d", ev.N, seen)
					}
					seen = ev.N
				}
			})
		})
	}
}

// Heads are not compressed, so more bytes of them than the file has are forged.
func TestHeadsAreLimitedByTheFile(t *testing.T) {
	path := record(t, "hello")
	const stored = 2_195_000 // leaves a few hundred bytes of it on the page of the row
	alter(t, path, fmt.Sprintf(`UPDATE exchanges SET url = 'https://h/' || hex(zeroblob(%d))`, (stored-len("https://h/"))/2))
	loopOverflow(t, path, stored, 12_000_000)
	s := openSmall(t, path)
	within(t, 30*time.Second, func(ctx context.Context) {
		n, heads := 0, 0
		var last error
		for e, err := range s.Exchanges(ctx) {
			if last = err; err != nil {
				break
			}
			n++
			heads += len(e.URL)
		}
		if !errors.Is(last, captures.ErrDamaged) || heads > 40<<20 {
			t.Errorf("%d exchanges with %d bytes, %v", n, heads, last)
		}
		n = 0
		for l, err := range s.Listing(ctx, 1) {
			if last = err; err != nil {
				break
			}
			n += len(l.Exchange.URL)
		}
		if !errors.Is(last, captures.ErrDamaged) || n > 40<<20 {
			t.Errorf("%d bytes are listed, %v", n, last)
		}
	})
}

// loopOverflow has copies of the only exchange, whose URL has size bytes, claim a URL
// of about claimed ones: the pages that it goes on in follow each other in a circle.
func loopOverflow(t testing.TB, path string, size, claimed int) {
	t.Helper()
	db := require.Value(sql.Open("sqlite", path))(t)
	var root, pageSize int
	require.NoError(t, db.QueryRow(`SELECT rootpage FROM sqlite_schema WHERE name = 'exchanges'`).Scan(&root))
	require.NoError(t, db.QueryRow(`PRAGMA page_size`).Scan(&pageSize))
	require.NoError(t, db.Close())
	file := require.Value(os.ReadFile(path))(t)
	pageAt := func(n int) []byte { return file[(n-1)*pageSize : n*pageSize] }
	page := pageAt(root)
	const leafTable = 13
	if page[0] != leafTable || binary.BigEndian.Uint16(page[3:]) != 1 {
		t.Fatal("the exchanges have not one row in their root")
	}
	cell := page[binary.BigEndian.Uint16(page[8:]):]
	payload, a := readVarint(cell)
	_, b := readVarint(cell[a:])
	most, perPage := pageSize-35, pageSize-4
	least := (pageSize-12)*32/255 - 23
	local := least + (int(payload)-least)%perPage
	if local > most {
		local = least
	}
	whole := bytes.Clone(cell[:a+b+local+4])

	// What the row keeps on its own page depends on the size modulo a page.
	more := (claimed - size) / perPage * perPage
	putVarint(t, whole, payload+uint64(more))
	header := whole[a+b:]
	url := bytes.Index(header, varint(uint64(size)*2+13))
	if url < 0 {
		t.Fatal("the URL's type is not in the row")
	}
	putVarint(t, header[url:], uint64(size+more)*2+13)

	first := int(binary.BigEndian.Uint32(whole[len(whole)-4:]))
	last := first
	for next := first; next != 0; next = int(binary.BigEndian.Uint32(pageAt(next))) {
		last = next
	}
	binary.BigEndian.PutUint32(pageAt(last), uint32(first))

	copies := (pageSize - 8) / (len(whole) + 2)
	if copies < 3 {
		t.Fatalf("no room for copies of %d bytes", len(whole))
	}
	clear(page[8:])
	binary.BigEndian.PutUint16(page[3:], uint16(copies))
	end := pageSize
	for i := range copies {
		end -= len(whole)
		copy(page[end:], whole)
		page[end+a] = byte(i + 1)
		binary.BigEndian.PutUint16(page[8+2*i:], uint16(end))
	}
	binary.BigEndian.PutUint16(page[5:], uint16(end))
	require.NoError(t, os.WriteFile(path, file, 0o600))
}

// varint is a number as SQLite writes it.
func varint(v uint64) []byte {
	b := []byte{byte(v & 0x7f)}
	for v >>= 7; v > 0; v >>= 7 {
		b = append([]byte{byte(v) | 0x80}, b...)
	}
	return b
}

// readVarint reads a number of at most eight bytes that SQLite wrote.
func readVarint(b []byte) (v uint64, n int) {
	for _, c := range b {
		v, n = v<<7|uint64(c&0x7f), n+1
		if c < 0x80 {
			break
		}
	}
	return v, n
}

// putVarint replaces the number at the beginning of b by one of the same length.
func putVarint(t testing.TB, b []byte, v uint64) {
	t.Helper()
	_, n := readVarint(b)
	if len(varint(v)) != n {
		t.Fatalf("%d takes %d bytes, not %d", v, len(varint(v)), n)
	}
	copy(b, varint(v))
}

// A schema whose text has no end does not have to be read to be refused.
func TestHugeSchemaIsRefused(t *testing.T) {
	path := record(t, "hello")
	alter(t, path, `PRAGMA writable_schema=ON`, `UPDATE sqlite_schema SET sql = sql || ' -- ' || hex(zeroblob(5000000)) WHERE name = 'events'`)
	if _, err := Open(path, ReadOptions{}); !errors.Is(err, captures.ErrDamaged) || !strings.Contains(err.Error(), "too big") {
		t.Errorf("%v", err)
	}
}

// A query that does not end is ended.
func TestReadingTimeIsLimited(t *testing.T) {
	path := record(t, "hello")
	s := require.Value(Open(path, ReadOptions{}))(t)
	defer func() { require.NoError(t, s.Close()) }()
	s.meter.pageTime = 50 * time.Millisecond
	within(t, 20*time.Second, func(ctx context.Context) {
		err := s.query(ctx, func(*rowValues) bool { return true }, `WITH RECURSIVE i(k) AS (SELECT 0 UNION ALL SELECT k+1 FROM i) SELECT max(k) FROM i`)
		if limit, ok := errors.AsType[*LimitError](err); !ok || !strings.Contains(limit.Error(), "50ms") {
			t.Errorf("%v", err)
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.query(ctx, func(*rowValues) bool { return true }, `SELECT 1`); !errors.Is(err, context.Canceled) || errors.Is(err, captures.ErrDamaged) {
		t.Errorf("%v", err)
	}
}

// Every loop over a capture ends when its context does, in the middle of a page, too.
func TestReadingEndsWithItsContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.uwc")
	w := require.Value(Create(path, Options{}))(t)
	recordMany(t, w, 1, 3000)
	for range 50 {
		require.Value(w.Begin(captures.Exchange{Method: "GET", URL: "https://h/"}))(t).End(captures.Complete, "")
	}
	require.NoError(t, w.Close())
	s := openSmall(t, path)
	for name, loop := range map[string]func(ctx context.Context, each func(error) bool){
		"Exchanges": func(ctx context.Context, each func(error) bool) {
			for _, err := range s.Exchanges(ctx) {
				if !each(err) {
					return
				}
			}
		},
		"Listing": func(ctx context.Context, each func(error) bool) {
			for _, err := range s.Listing(ctx, 1) {
				if !each(err) {
					return
				}
			}
		},
		"Chunks": func(ctx context.Context, each func(error) bool) {
			for _, err := range s.Chunks(ctx, 1, 0) {
				if !each(err) {
					return
				}
			}
		},
		"Cleaned": func(ctx context.Context, each func(error) bool) {
			ex := require.Value(s.Exchange(ctx, 1))(t)
			for _, err := range s.Cleaned(ctx, ex, redact.New(redact.Options{}), [2][]redact.Edit{}) {
				if !each(err) {
					return
				}
			}
		},
	} {
		for _, after := range []int{1, 40} {
			ctx, cancel := context.WithCancel(t.Context())
			n := 0
			var last error
			loop(ctx, func(err error) bool {
				last = err
				if n++; n == after {
					cancel()
				}
				return n < after+5
			})
			if !errors.Is(last, context.Canceled) {
				t.Errorf("%s: %d after the end: %v", name, n-after, last)
			}
			cancel()
		}
	}
}
