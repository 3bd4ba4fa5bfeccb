package compare

import (
	"fmt"
	"strings"
	"testing"
)

// each returns the texts of a format for the numbers below n, joined.
func each(n int, format string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.ReplaceAll(format, "#", fmt.Sprint(i)))
	}
	return b.String()
}

// TestManyRenames checks that names which many elements have in common are not compared in pairs, which would
// take quadratic time: such elements count as removed and added.
func TestManyRenames(t *testing.T) {
	t.Parallel()
	methods := func(n int, name string) string {
		return "message M {} service S {" + each(n, "rpc "+name+"(M) returns (M);") + "}"
	}
	services := func(n int, name string) string {
		return "message M {}" + each(n, "service "+name+"{rpc Get(M) returns (M);}")
	}
	for _, c := range []struct {
		what, old, now string
		want           ChangeKind
		count          int
	}{
		{"few methods", methods(20, "GetThing#Old"), methods(20, "GetThing#New"), renamed, 20},
		{"many methods", methods(100, "GetThing#Old"), methods(100, "GetThing#New"), Removed, 100},
		{"few services", services(20, "Old#"), services(20, "New#"), renamed, 20},
		{"many services", services(maxSharing+1, "Old#"), services(maxSharing+1, "New#"), Removed, maxSharing + 1},
	} {
		count := 0
		for _, change := range Diff(schemaOf(t, c.old), schemaOf(t, c.now)) {
			if change.Change == c.want {
				count++
			}
		}
		if count != c.count {
			t.Errorf("%s: %d %s, want %d", c.what, count, c.want, c.count)
		}
	}
}

// TestBoundedWork compares definitions in which each pair of types reveals only one other pair.
func TestBoundedWork(t *testing.T) {
	t.Parallel()
	chain := func(name string, n int) string {
		body := fmt.Sprintf("message Root {%s0 a = 1;}", name)
		for i := range n {
			body += fmt.Sprintf("message %s%d {%s%d a = 1;}", name, i, name, i+1)
		}
		return body + fmt.Sprintf("message %s%d {}", name, n)
	}
	old, now := schemaOf(t, chain("A", 5000)), schemaOf(t, chain("B", 5000))
	if work := matchTypes(old, now).work; work > maxWork+maxWork/10 {
		t.Errorf("%d comparisons, want at most about %d", work, maxWork)
	}
}
