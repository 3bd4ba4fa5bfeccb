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
	time.Sleep(2 * reloadInterval)
	for _, c := range []struct {
		text string
		want int
	}{{"rules:\n  - {match: host:a, drop: true}\n", 1}, {"rules:\n  - {match: hots:a, drop: true}\n", -1}, {"rules: []\n", 0}} {
		write(c.text)
		select {
		case n := <-got:
			if n != c.want {
				t.Errorf("%q: %d", c.text, n)
			}
		case <-ctx.Done():
			t.Fatalf("%q was not noticed", c.text)
		}
	}
}
