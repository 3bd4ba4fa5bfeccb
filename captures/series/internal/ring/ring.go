// Package ring says when the files of a capture that keeps the newest traffic only are
// removed. A series of captures calls it, and removes them.
package ring

import "time"

const (
	// Parts is in how many files about a ring is kept: one of them goes at a time.
	Parts = 16

	// reserve is how many of these are free for what is written between two looks, and
	// while a file is closed.
	reserve = 4

	// interval is how often the size of a ring is looked at.
	interval = 50 * time.Millisecond
)

// files are those of a ring.
type files interface {
	// Size is what all of them take, in bytes.
	Size() int64

	// DropClosed removes the oldest one that is closed, if there is one.
	DropClosed() bool

	// EndOldest closes the oldest one, so that what runs in it ends.
	EndOldest() bool
}

// Keep removes old files, so that all take no more than limit, until stop is closed. It
// looks more often if rotated says that there is a new file.
func Keep(f files, limit int64, rotated, stop <-chan struct{}) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		case <-rotated:
		}
		Trim(f, limit-reserve*limit/Parts, limit-reserve*limit/Parts/2)
	}
}

// Trim removes files, the oldest first, until they take no more than soft. Those with
// exchanges that still run stay, unless nothing else is left to remove and they take more
// than hard.
func Trim(f files, soft, hard int64) {
	for f.Size() > soft {
		if f.DropClosed() {
			continue
		}
		if f.Size() <= hard || !f.EndOldest() {
			return
		}
	}
}
