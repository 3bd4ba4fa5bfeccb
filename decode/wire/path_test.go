package wire

import (
	"testing"

	"unwire/decode/fieldpath"
)

func TestPaths(t *testing.T) {
	// 1{2:1 2:2 3{5:7}} 1{2:3}
	tree := Parse(unhex(t, "0a 08 1001 1002 1a02 2807 0a02 1003"), Options{})
	for _, c := range []struct {
		path string
		want int
	}{{"", 1}, {"1", 2}, {"1[1]", 1}, {"1.2", 3}, {"1[0].2", 2}, {"1[0].2[1]", 1}, {"1.3.5", 1}, {"9", 0}, {"1.2[7]", 0}, {"name", 0}, {"1.*", 0}} {
		p, _, err := fieldpath.Cut(c.path)
		if err != nil {
			t.Fatal(err)
		}
		if got := tree.Find(p); len(got) != c.want {
			t.Errorf("Find(%q) = %v, want %d", c.path, got, c.want)
		}
	}
	five := tree.Find(fieldpath.Path{{Name: "1"}, fieldpath.Field(3), fieldpath.Field(5)})
	if got := tree.PathOf(five[0]).String(); got != "1[0].3.5" {
		t.Errorf("PathOf = %s", got)
	}
	if got := tree.FieldPath(five[0]).String(); got != "1.3.5" {
		t.Errorf("FieldPath = %s", got)
	}
	if i := tree.At(9); i != five[0] {
		t.Errorf("At(9) = %d, want %d", i, five[0])
	}
}
