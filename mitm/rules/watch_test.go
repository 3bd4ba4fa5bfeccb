package rules

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A file that changes is loaded again; what is wrong with it is reported.
func TestWatch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	write("rules: []\n")
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	got := make(chan int, 10)
	go Watch(ctx, path, func(s *Set, err error) {
		if err != nil {
			got <- -1
			return
		}
		got <- s.Len()
	})
	expect := func(what string, want int) {
		t.Helper()
		select {
		case n := <-got:
			if n != want {
				t.Errorf("%q: %d rules, want %d", what, n, want)
			}
		case <-ctx.Done():
			t.Fatalf("%q was not noticed", what)
		}
	}
	time.Sleep(2 * reloadInterval)
	for _, c := range []struct {
		text string
		want int
	}{{"rules:\n  - {match: host:a, drop: true}\n", 1}, {"rules:\n  - {match: hots:a, drop: true}\n", -1}, {"rules: []\n", 0}} {
		write(c.text)
		expect(c.text, c.want)
	}

	// A deleted file is reported once, and loaded when it is there again, even if it has not changed.
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	expect("deleted", -1)
	time.Sleep((missingReloads + 2) * reloadInterval)
	if err := os.Rename(path+".away", path); err != nil {
		t.Fatal(err)
	}
	expect("restored", 0)
}
