package query

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"unwire/captures"
	"unwire/cmd/internal/contract"
	"unwire/decode/search"
)

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestSearch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.uwc")
	record(t, path, "one hello", "two", "three hello hello")
	c := open(t, path)
	text, err := search.NewText("hello", true, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		address string
		search  Search
		first   bool
		want    []string
	}{
		{path, Search{}, false, []string{"#1/up/0 1 one |hello|", "1: 1", "2: 0", "#3/up/0 1 three |hello| hello", "#3/up/0 1 three hello |hello|", "3: 2"}},
		{path, Search{}, true, []string{"#1/up/0 1 one |hello|", "1: 1", "2: 0", "#3/up/0 1 three |hello| hello", "3: 1"}},
		{path + "#3", Search{Dir: "down"}, false, []string{"3: 0"}},
		{path + "#1/up/0", Search{Dir: "up"}, false, []string{"#1/up/0 1 one |hello|", "1: 1"}},
		{path, Search{Method: "D*"}, false, nil},
		{path + "#1", Search{Method: "/a.B/C"}, false, []string{"#1/up/0 1 one |hello|", "1: 1"}},
	} {
		var got []string
		s := test.search
		s.Query = search.Query{Text: text}
		s.Match = func(m *contract.Match) (bool, error) {
			got = append(got, fmt.Sprintf("%s %s %s|%s|%s", m.Address[len(path):], m.Path, m.Before, m.Match, m.After))
			return !test.first, nil
		}
		s.Searched = func(a Address, n int) error {
			got = append(got, fmt.Sprintf("%d: %d", a.Exchange, n))
			return nil
		}
		if err := c.Search(t.Context(), ParseAddress(test.address), s); err != nil {
			t.Errorf("%s: %v", test.address, err)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s %+v:\n%q\nwant\n%q", test.address, test.search.Method, got, test.want)
		}
	}

	failed := errors.New("no more")
	s := Search{Query: search.Query{Text: text}, Match: func(*contract.Match) (bool, error) { return true, failed }}
	if err := c.Search(t.Context(), ParseAddress(path), s); !errors.Is(err, failed) {
		t.Errorf("the error of a function: %v", err)
	}
	if err := c.Search(t.Context(), ParseAddress(path+"#9"), s); !errors.Is(err, captures.ErrNoExchange) {
		t.Errorf("an exchange that is not there: %v", err)
	}
	s.Method = "["
	if err := c.Search(t.Context(), ParseAddress(path), s); err == nil {
		t.Error("a pattern that is none was taken")
	}
}
