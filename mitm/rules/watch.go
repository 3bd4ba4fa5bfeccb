package rules

import (
	"context"
	"os"
	"time"
)

// reloadInterval is how often Watch checks whether the file has changed.
const reloadInterval = 250 * time.Millisecond

// missingReloads is the number of checks in a row that must miss the file before it is reported as missing. A file that
// an editor replaces is missing for a moment.
const missingReloads = 4

// Watch loads a file whenever it changes, until ctx ends. changed gets the rules, or the errors of the file. That the
// file is missing is reported once; when it is there again, it is loaded.
func Watch(ctx context.Context, path string, changed func(s *Set, err error)) {
	tick := time.NewTicker(reloadInterval)
	defer tick.Stop()
	before, _ := os.Stat(path)
	for missing := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now, err := os.Stat(path)
		if err != nil {
			if missing++; missing == missingReloads {
				before = nil
				changed(nil, err)
			}
			continue
		}
		missing = 0
		if before != nil && now.ModTime().Equal(before.ModTime()) && now.Size() == before.Size() && os.SameFile(before, now) {
			continue
		}
		before = now
		changed(Load(path))
	}
}
