package captures

import (
	"database/sql"
	"errors"
	"math"
	"path/filepath"
	"testing"
)

// A capture of the first format is read as it is; it has no place for
// summaries until a recorder brings it up to date.
func TestFormatWithoutSummaries(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.uwc")
	s := must(create(path, Options{}, tuning{migrations: formatMigrations()[:1]}))(t)
	r := must(s.Begin(Exchange{Method: "GET", URL: "https://h/"}))(t)
	r.Chunk(Down, []byte("kept"))
	r.End(Complete, "")
	check(t, s.Close())

	s = must(Open(path))(t)
	l := all(t, s.Listing(t.Context(), 1))
	if len(l) != 1 || l[0].Exchange.BytesDown != 4 || l[0].Summary != nil {
		t.Errorf("%+v", l)
	}
	put := []Summary{{Exchange: 1, Version: 1, Truth: l[0].Truth, Thread: "r"}}
	if err := s.PutSummaries(t.Context(), put, 1); !errors.Is(err, ErrOlderFormat) {
		t.Errorf("put: %v", err)
	}
	if pieces, upTo, err := s.Thread(t.Context(), "r", 1); len(pieces) != 0 || upTo != math.MinInt64 || err != nil {
		t.Errorf("%v, %d, %v", pieces, upTo, err)
	}
	check(t, s.Close())

	check(t, must(Create(path, Options{}))(t).Close())
	s = must(Open(path))(t)
	defer func() { check(t, s.Close()) }()
	check(t, s.PutSummaries(t.Context(), put, 1))
	if l := all(t, s.Listing(t.Context(), 1)); l[0].Summary == nil || *l[0].Summary != put[0] {
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
	w := must(Create(path, Options{}))(t)
	check(t, w.writer.do(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(t.Context(), `DELETE FROM summaries; DELETE FROM meta WHERE name = '`+summarisedTo+`'`)
		return err
	}))
	check(t, w.Close())
	if _, upTo, err := s.Thread(t.Context(), "r", 1); upTo != math.MinInt64 || err != nil {
		t.Errorf("dropped: %d, %v", upTo, err)
	}
}
