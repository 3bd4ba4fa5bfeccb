package arch

import (
	"bufio"
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	update = flag.Bool("update", false, "update testdata: write what the tests expect anew; numbers can only become smaller")
	reset  = flag.Bool("reset", false, "with -update: also accept what has grown")
)

const ratchetFile = "testdata/ratchet.txt"

// A measurement identifies a number: the kind of measurement, and the package, file or
// function.
type measurement struct {
	kind, of string
}

// A ratchet has the measurements that exceed their limits today. All others must keep the
// limit. A measurement in the ratchet must not grow, and if it shrinks, the file must be
// updated, so that it cannot grow again.
type ratchet map[measurement]int

func readRatchet(t *testing.T) ratchet {
	t.Helper()
	f, err := os.Open(ratchetFile)
	if os.IsNotExist(err) && *reset {
		return ratchet{}
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()

	r := ratchet{}
	for sc := bufio.NewScanner(f); sc.Scan(); {
		if sc.Text() == "" || strings.HasPrefix(sc.Text(), "#") {
			continue
		}
		fields := strings.Fields(sc.Text())
		if len(fields) != 3 {
			t.Fatalf("%s: %q is not KIND NAME NUMBER", ratchetFile, sc.Text())
		}
		n, err := strconv.Atoi(fields[2])
		if err != nil {
			t.Fatalf("%s: %v", ratchetFile, err)
		}
		r[measurement{fields[0], fields[1]}] = n
	}
	return r
}

// checkExceptions reports entries of packages that must keep the limits.
func (r ratchet) checkExceptions(t *testing.T) {
	t.Helper()
	for m := range r {
		if m.kind == "undocumented-names" || m.kind == "banned-phrases" {
			continue // every package may have some left
		}
		of, _, _ := strings.Cut(m.of, ":")
		if strings.HasSuffix(of, ".go") {
			of = filepath.ToSlash(filepath.Dir(of))
		}
		if !slices.Contains(mayExceed, of) {
			t.Errorf("%s of %s is in %s: only %s may exceed a limit", m.kind, m.of, ratchetFile, strings.Join(mayExceed, ", "))
		}
	}
}

// check compares what was measured of one kind with the limit and the ratchet.
func (r ratchet) check(t *testing.T, kind string, limit int, measured map[string]int) {
	t.Helper()
	if len(measured) == 0 {
		t.Fatalf("%s: nothing was measured", kind)
	}
	if *update {
		r.lower(t, kind, limit, measured)
		return
	}
	for _, of := range slices.Sorted(maps.Keys(measured)) {
		n := measured[of]
		before, known := r[measurement{kind, of}]
		switch {
		case !known && n > limit:
			t.Errorf("%s of %s: %d, more than %d", kind, of, n, limit)
		case known && n > before:
			t.Errorf("%s of %s: %d, more than the %d that %s allows", kind, of, n, before, ratchetFile)
		case known && n < before:
			t.Errorf("%s of %s: %d, less than before: lower it with go test ./cmd/internal/arch -update", kind, of, n)
		}
	}
	for m := range r {
		if _, ok := measured[m.of]; m.kind == kind && !ok {
			t.Errorf("%s of %s: it is gone: remove it with go test ./cmd/internal/arch -update", kind, m.of)
		}
	}
}

// lower updates the numbers of one kind that have become smaller.
func (r ratchet) lower(t *testing.T, kind string, limit int, measured map[string]int) {
	t.Helper()
	for m := range r {
		if m.kind == kind && measured[m.of] <= limit {
			delete(r, m)
		}
	}
	for of, n := range measured {
		m := measurement{kind, of}
		before, known := r[m]
		switch {
		case n <= limit:
		case *reset || known && n <= before:
			r[m] = n
		default:
			t.Errorf("%s of %s: %d: it has grown, and is not written", kind, of, n)
		}
	}
}

func (r ratchet) write(t *testing.T) {
	t.Helper()
	if !*update {
		return
	}
	var b strings.Builder
	b.WriteString("# What exceeds the limits of limits_test.go: KIND NAME NUMBER. Numbers only become smaller:\n# go test ./cmd/internal/arch -update\n")
	order := func(a, b measurement) int {
		return cmp.Or(strings.Compare(a.kind, b.kind), strings.Compare(a.of, b.of))
	}
	kind := ""
	for _, m := range slices.SortedFunc(maps.Keys(r), order) {
		if m.kind != kind {
			b.WriteString("\n")
			kind = m.kind
		}
		fmt.Fprintf(&b, "%s %s %d\n", m.kind, m.of, r[m])
	}
	if err := os.MkdirAll(filepath.Dir(ratchetFile), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(ratchetFile, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
