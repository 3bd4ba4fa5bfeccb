package query

import (
	"errors"
	"path/filepath"
	"testing"

	"unwire/decode/diff"
	"unwire/decode/envelope"
)

// TestCompareSeries: exchanges of a method and single messages have the same varying
// path.
func TestCompareSeries(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.uwc")
	record(t, path, "The first of the texts", "The second of the texts", "The third of the texts")
	for _, c := range []struct {
		parts  []string
		method string
		length int
		path   string
	}{
		{[]string{path}, "C", 3, "@up 1"},
		{[]string{path}, "a.B/C", 3, "@up 1"},
		{[]string{path + "#1", path + "#2"}, "", 2, "@up 1"},
		{[]string{path + "#1/up/0", path + "#3/up/0", writeFile(t, fieldOne("Of a file"))}, "", 3, "1"},
	} {
		s, err := CompareSeries(t.Context(), c.parts, c.method, diffOptions())
		if err != nil {
			t.Errorf("%q: %v", c.parts, err)
			continue
		}
		var varies []string
		for _, v := range s.Variations {
			if v.Class == diff.Varies {
				varies = append(varies, v.Path)
			}
		}
		if s.Length != c.length || len(varies) != 1 || varies[0] != c.path {
			t.Errorf("%q: %d parts, %q vary; want %d, %q", c.parts, s.Length, varies, c.length, c.path)
		}
	}
}

func TestCompareSeriesErrors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.uwc")
	record(t, path, "The first of the texts", "The second of the texts")
	several := writeFile(t, envelope.Append(envelope.Append(nil, 0, fieldOne("One")), 0, fieldOne("Two")))
	for _, c := range []struct {
		parts  []string
		method string
		want   DiffProblem
	}{
		{[]string{path}, "", NoMethod},
		{[]string{path}, "Other", NoExchange},
		{[]string{path + "#1"}, "", Unlike},
		{[]string{path + "#1", path + "#2/up/0"}, "", Unlike},
		{[]string{path + "#1/up/0", several}, "", SeveralMessages},
	} {
		_, err := CompareSeries(t.Context(), c.parts, c.method, diffOptions())
		if e, ok := errors.AsType[*DiffError](err); !ok || e.Problem != c.want {
			t.Errorf("%q: %v, want problem %d", c.parts, err, c.want)
		}
	}
}
