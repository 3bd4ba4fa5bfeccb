package rules

import (
	"context"
	"os"
	"time"
)

// reloadInterval is how often Watch checks whether the file has changed.
const reloadInterval = 250 * time.Millisecond

// Watch loads a file whenever it changes, until ctx ends. changed gets the rules, or the errors of the file.
func Watch(ctx context.Context, path string, changed func(s *Set, err error)) {
	tick := time.NewTicker(reloadInterval)
	defer tick.Stop()
	before, _ := os.Stat(path)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now, err := os.Stat(path)
		if err != nil {
			// An editor may be replacing the file.
			continue
		}
		if before != nil && now.ModTime().Equal(before.ModTime()) && now.Size() == before.Size() && os.SameFile(before, now) {
			continue
		}
		before = now
		changed(Load(path))
	}
}
