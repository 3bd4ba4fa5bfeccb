package store

import (
	"database/sql"
	"errors"
	"math"
	"testing"

	"unwire/captures"
	"unwire/captures/internal/require"
)

// A capture of the first format is read as it is; it has no place for
// summaries until a recorder brings it up to date.
func TestFormatWithoutSummaries(t *testing.T) {
	path := older(t, 1)
	s := require.Value(Open(path, ReadOptions{}))(t)
	l := require.All(t, s.Listing(t.Context(), 1))
	if len(l) != 2 || l[0].Exchange.BytesDown != 5003 || l[0].Summary != nil {
		t.Errorf("%+v", l)
	}
	put := []captures.Summary{{Exchange: 1, Version: 1, ExchangeHash: l[0].ExchangeHash, Thread: "r"}}
	if err := s.PutSummaries(t.Context(), put, 1); !errors.Is(err, captures.ErrOlderFormat) {
		t.Errorf("put: %v", err)
	}
	if pieces, upTo, err := s.Thread(t.Context(), "r", 1); len(pieces) != 0 || upTo != math.MinInt64 || err != nil {
		t.Errorf("%v, %d, %v", pieces, upTo, err)
	}
	require.NoError(t, s.Close())

	require.NoError(t, require.Value(Create(path, Options{}))(t).Close())
	s = require.Value(Open(path, ReadOptions{}))(t)
	defer func() { require.NoError(t, s.Close()) }()
	put[0].ExchangeHash = require.All(t, s.Listing(t.Context(), 1))[0].ExchangeHash
	require.NoError(t, s.PutSummaries(t.Context(), put, 1))
	if l := require.All(t, s.Listing(t.Context(), 1)); l[0].Summary == nil || *l[0].Summary != put[0] {
		t.Errorf("%+v", l[0].Summary)
	}
	if pieces, upTo, err := s.Thread(t.Context(), "r", 1); len(pieces) != 1 || upTo != 1 || err != nil {
		t.Errorf("%v, %d, %v", pieces, upTo, err)
	}
	for l := range s.Listing(t.Context(), 2) {
		if l.Summary != nil {
			t.Errorf("of another version: %+v", l.Summary)
		}
	}
	w := require.Value(Create(path, Options{}))(t)
	require.NoError(t, w.writer.runInTransaction(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(t.Context(), `DELETE FROM summaries; DELETE FROM meta WHERE name = '`+summarisedTo+`'`)
		return err
	}))
	require.NoError(t, w.Close())
	if _, upTo, err := s.Thread(t.Context(), "r", 1); upTo != math.MinInt64 || err != nil {
		t.Errorf("dropped: %d, %v", upTo, err)
	}
}
