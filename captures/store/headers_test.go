package store

import (
	"os"
	"path/filepath"
	"slices"
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
