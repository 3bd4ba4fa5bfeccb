// Package ring decides when the oldest files of a capture must be removed so that all files together stay below
// a size limit. Package series implements the removal.
package ring

import "time"

const (
	// Parts is the approximate number of files of a ring, i.e. a series of captures with a limited total size.
	// Files are removed one at a time.
	Parts = 16

	// reserveParts is the share of the limit, in files of the size limit/Parts, that is kept free for traffic
	// that arrives between two checks or while a file is being closed.
	reserveParts = 4

	// checkInterval is the time between two size checks.
	checkInterval = 50 * time.Millisecond
)

// files is the set of files of a ring, i.e. a series of captures with a limited total size.
type files interface {
	// Size returns the total size of all files in bytes.
	Size() int64

	// RemoveOldestClosed removes the oldest file that is no longer written to, and reports whether
	// there was one.
	RemoveOldestClosed() bool

	// CloseOldest closes the oldest open file, whose running exchanges end. It reports whether there was one.
	CloseOldest() bool
}

// Maintain keeps the total size of the files below limit bytes by removing old ones, until stop is closed. It
// checks periodically, and at once when rotated signals a new file.
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

// Trim removes the oldest closed files until the total size is at most soft bytes. Only if no closed file is
// left and the size exceeds hard bytes, it closes files in which exchanges still run, and removes them.
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
