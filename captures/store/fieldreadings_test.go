package store

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"unwire/captures"
	"unwire/captures/internal/require"
)

// Readings are stored beside a reader, replaced, forgotten, and outlive what is
// derived.
func TestReadings(t *testing.T) {
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "a.uwc")
	w := require.Value(Create(path, Options{}))(t)
	one := captures.Reading{Method: "/a.B/C", Dir: captures.Down, Path: "1.2", Type: "string"}
	two := captures.Reading{Method: "/a.B/C", Dir: captures.Up, Path: "1.2", Type: "packed varint"}
	other := captures.Reading{Method: "/a.B/CD", Dir: captures.Up, Path: "3", Type: "bytes"}
	require.NoError(t, w.PutReading(ctx, one))

	r := require.Value(Open(path, ReadOptions{}))(t)
	if err := r.PutReading(ctx, two); !errors.Is(err, captures.ErrInUse) {
		t.Errorf("while it is recorded to: %v", err)
	}
	require.NoError(t, w.Close())
	for _, put := range []captures.Reading{two, other, {Method: "/a.B/C", Dir: captures.Down, Path: "1.2", Type: "bytes"}, one} {
		require.NoError(t, r.PutReading(ctx, put))
	}
	if got := require.Value(r.Readings(ctx, "/a.B/C"))(t); !slices.Equal(got, []captures.Reading{two, one}) {
		t.Errorf("%v", got)
	}
	require.NoError(t, r.PutReading(ctx, captures.Reading{Method: one.Method, Dir: one.Dir, Path: one.Path}))
	if got := require.Value(r.Readings(ctx, ""))(t); !slices.Equal(got, []captures.Reading{two, other}) {
		t.Errorf("%v", got)
	}
	for _, bad := range []captures.Reading{{Method: strings.Repeat("m", 5000), Dir: captures.Up, Path: "1", Type: "bytes"}} {
		if err := r.PutReading(ctx, bad); err == nil {
			t.Errorf("stored: %.20q", bad.Method)
		}
	}
	require.NoError(t, r.Close())
}
