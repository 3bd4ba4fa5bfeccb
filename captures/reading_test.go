package captures

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"unwire/captures/internal/require"
)

// Readings are stored beside a reader, replaced, forgotten, and outlive what is
// derived.
func TestReadings(t *testing.T) {
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "a.uwc")
	w := require.Value(Create(path, Options{}))(t)
	one := Reading{"/a.B/C", Down, "1.2", "string"}
	two := Reading{"/a.B/C", Up, "1.2", "packed varint"}
	other := Reading{"/a.B/CD", Up, "3", "bytes"}
	require.NoError(t, w.PutReading(ctx, one))

	r := require.Value(Open(path))(t)
	if err := r.PutReading(ctx, two); !errors.Is(err, ErrInUse) {
		t.Errorf("while it is recorded to: %v", err)
	}
	require.NoError(t, w.Close())
	for _, put := range []Reading{two, other, {"/a.B/C", Down, "1.2", "bytes"}, one} {
		require.NoError(t, r.PutReading(ctx, put))
	}
	if got := require.Value(r.Readings(ctx, "/a.B/C"))(t); !slices.Equal(got, []Reading{one, two}) {
		t.Errorf("%v", got)
	}
	require.NoError(t, r.PutReading(ctx, Reading{one.Method, one.Dir, one.Path, ""}))
	if got := require.Value(r.Readings(ctx, ""))(t); !slices.Equal(got, []Reading{two, other}) {
		t.Errorf("%v", got)
	}
	for _, bad := range []Reading{{strings.Repeat("m", 5000), Up, "1", "bytes"}, {"a\x1fb", Up, "1", "bytes"}} {
		if err := r.PutReading(ctx, bad); err == nil {
			t.Errorf("stored: %.20q", bad.Method)
		}
	}
	require.NoError(t, r.Close())
}
