package query

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"unwire/decode/filter"
)

// Select and Selects agree, whether the filter needs consecutive exchanges or single ones far apart.
func TestSelect(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.uwc")
	var texts []string
	for i := range 3 * maxSkipped {
		texts = append(texts, fmt.Sprintf("text %d of %d", i, i%7))
	}
	record(t, path, texts...)
	c := open(t, path)
	for text, want := range map[string]int{
		`text:"of 3"`: 7,
		`text:"text"`: 3 * maxSkipped,
		`(id:1 or id:2 or id:30 or id:48) text:text`: 4,
		`id:48 text:text`: 1,
		`text:nowhere`:    0,
	} {
		f, err := filter.Parse(text, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		list, err := c.Select(t.Context(), f, nil)
		if err != nil {
			t.Fatal(err)
		}
		var got, each []int64
		for i := range list.Exchanges {
			got = append(got, list.Exchanges[i].ID)
		}
		all, err := c.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i := range all.Exchanges {
			ok, err := c.Selects(t.Context(), f, nil, &all.Exchanges[i])
			if err != nil {
				t.Fatal(err)
			}
			if ok {
				each = append(each, all.Exchanges[i].ID)
			}
		}
		if len(got) != want || !slices.Equal(got, each) {
			t.Errorf("%s selects %d, one by one %d, want %d exchanges", text, got, each, want)
		}
	}
}
