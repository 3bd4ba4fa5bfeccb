package store

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"unwire/captures"
	"unwire/captures/internal/require"
)

// TestHeadersAreStoredOnce: equal sections take one row, however many exchanges have them,
// and of one that is too large the first fields are stored, with a note.
func TestHeadersAreStoredOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.uwc")
	s := require.Value(Create(path, Options{KeepSecrets: true}))(t)
	same := captures.Headers{{Name: "x", Value: strings.Repeat("v", 100_000)}}
	var large captures.Headers
	for range 50 {
		large = append(large, captures.Header{Name: "x", Value: strings.Repeat("\x01", 10_000)})
	}
	for range 100 {
		r := require.Value(s.Begin(captures.Exchange{RequestHeaders: same}))(t)
		r.Response(200, same)
		r.End(captures.Complete, "")
	}
	r := require.Value(s.Begin(captures.Exchange{RequestHeaders: large}))(t)
	r.Trailers(captures.Down, same)
	r.End(captures.Failed, "reset")
	require.NoError(t, s.Close())
	if info := require.Value(os.Stat(path))(t); info.Size() > 2<<20 {
		t.Errorf("%d bytes", info.Size())
	}
	o := require.Value(Open(path, ReadOptions{}))(t)
	defer func() { require.NoError(t, o.Close()) }()
	n := 0
	for e, err := range o.Exchanges(t.Context()) {
		require.NoError(t, err)
		if n++; n <= 100 && (!slices.Equal(e.RequestHeaders, same) || !slices.Equal(e.ResponseHeaders, same)) {
			t.Fatalf("exchange %d: %d and %d fields", e.ID, len(e.RequestHeaders), len(e.ResponseHeaders))
		}
		if n > 100 && (len(e.RequestHeaders) != 17 || len(e.ResponseTrailers) != 1 || e.Error != "reset; 33 header fields were not stored: a section has at most 1048576 bytes") {
			t.Errorf("%d fields, %q", len(e.RequestHeaders), e.Error)
		}
	}
}

// TestLongHeaders: long sections are stored as payloads, which those that differ in the order
// of their fields share little of but compress well, and read back in every way.
func TestLongHeaders(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.uwc")
	s := require.Value(Create(path, Options{KeepSecrets: true}))(t)
	section := func(n int) (h captures.Headers) {
		for i := range 50 {
			h = append(h, captures.Header{Name: "x", Value: strings.Repeat("ab"[n>>(i%8)&1:][:1], 2000)})
		}
		return append(h, captures.Header{Name: "n", Value: "\xff" + strconv.Itoa(n)})
	}
	const exchanges = 40
	for n := range exchanges {
		r := require.Value(s.Begin(captures.Exchange{RequestHeaders: section(n)}))(t)
		r.Response(200, section(n/2))
		r.Trailers(captures.Down, captures.Headers{{Name: "x", Value: strings.Repeat("a", 5000)}})
		r.End(captures.Complete, "")
	}
	check := func(s *Store) {
		t.Helper()
		got := require.All(t, s.Exchanges(t.Context()))
		for e, err := range s.all(t.Context()) {
			require.NoError(t, err)
			if e.Kind == captures.Ended {
				got = append(got, e.Exchange)
			}
		}
		for n, e := range got {
			if n %= exchanges; !slices.Equal(e.RequestHeaders, section(n)) || !slices.Equal(e.ResponseHeaders, section(n/2)) || len(e.ResponseTrailers) != 1 {
				t.Fatalf("exchange %d: %d and %d fields", e.ID, len(e.RequestHeaders), len(e.ResponseHeaders))
			}
		}
		if len(got) != 2*exchanges {
			t.Errorf("%d exchanges", len(got))
		}
	}
	require.NoError(t, s.Flush(t.Context()))
	check(s)
	require.NoError(t, s.Close())
	if info := require.Value(os.Stat(path))(t); info.Size() > 400<<10 {
		t.Errorf("%d bytes", info.Size())
	}
	s = require.Value(Open(path, ReadOptions{}))(t)
	defer func() { require.NoError(t, s.Close()) }()
	check(s)

	// The vector of FORMAT.md.
	var sum, data []byte
	var sectionSum []byte
	require.NoError(t, s.readDB.QueryRow(`SELECT h.sha256, b.sha256, b.data FROM headers h JOIN blobs b ON b.id = CAST(h.fields AS INTEGER)
		WHERE b.size = 5010 AND b.codec = 1 AND h.fields = CAST(b.id AS TEXT)`).Scan(&sectionSum, &sum, &data))
	format := string(require.Value(os.ReadFile("FORMAT.md"))(t))
	if want := fmt.Sprintf("sha256  %x\nzstd    % x\n", sum, data); !strings.Contains(format, want) || !bytes.Equal(sum, sectionSum) {
		t.Errorf("FORMAT.md has not %s", want)
	}
}
