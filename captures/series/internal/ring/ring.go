// Package ring decides when the oldest files of a capture must be removed so that all files together stay below
// a size limit. Package series implements the removal.
package ring

import "time"

const (
	// Parts is the approximate number of files of a ring. One file at a time is removed.
	Parts = 16

	// reserveParts is the number of parts that are kept free for traffic that arrives between two checks or
	// while a file is being closed.
	reserveParts = 4

	// checkInterval is the time between two size checks.
	checkInterval = 50 * time.Millisecond
)

// files is the set of files of a ring, from which the oldest can be removed.
type files interface {
	// Size returns the total size of all files in bytes.
	Size() int64

	// RemoveOldestClosed removes the oldest file that is no longer written to, and reports whether
	// there was one.
	RemoveOldestClosed() bool

	// CloseOldest closes the oldest open file, whose running exchanges end. It reports whether there was one.
	CloseOldest() bool
}

// Maintain keeps the total size below limit by removing old files, until stop is closed. It checks periodically,
// and at once when rotated signals a new file.
func Maintain(f files, limit int64, rotated, stop <-chan struct{}) {
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		case <-rotated:
		}
		Trim(f, limit-reserveParts*limit/Parts, limit-reserveParts*limit/Parts/2)
	}
}

// Trim removes the oldest closed files until the total size is at most soft. Only if no closed file is left and
// the size exceeds hard, it closes files in which exchanges still run.
func Trim(f files, soft, hard int64) {
	for f.Size() > soft {
		if f.RemoveOldestClosed() {
			continue
		}
		if f.Size() <= hard || !f.CloseOldest() {
			return
		}
	}
}
