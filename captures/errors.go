package captures

import (
	"errors"
	"fmt"
)

// Errors on which callers branch. They come wrapped, with the path of the file and the cause.
var (
	// ErrNotCapture is the error for a file that is not an unwire capture.
	ErrNotCapture = errors.New("not an unwire capture")
	// ErrNewerFormat is the error for a capture whose format version is newer than this program reads.
	ErrNewerFormat = errors.New("written by a newer unwire")
	// ErrOlderFormat is the error for a capture whose format must be upgraded first.
	ErrOlderFormat = errors.New("written by an older unwire")
	// ErrDamaged is the error for a capture whose contents contradict the format.
	ErrDamaged = errors.New("damaged capture")
	// ErrNoExchange is the error for an exchange ID that the capture does not contain.
	ErrNoExchange = errors.New("no such exchange")
	// ErrNoFolder is the error for a capture to be created in a folder that does not exist.
	ErrNoFolder = errors.New("no such folder")
	// ErrInUse is the error for a capture that another process is recording to.
	ErrInUse = errors.New("already being recorded to")
	// ErrReadOnly is the error for a write to a capture that was opened for reading.
	ErrReadOnly = errors.New("opened for reading only")
	// ErrClosed is the error for the use of a closed capture.
	ErrClosed = errors.New("closed")
	// ErrGone means that the file was deleted or moved while it was being recorded to.
	ErrGone = errors.New("deleted or moved while recording")
	// ErrTooLarge means that data in a capture exceeds a limit for reading.
	ErrTooLarge = errors.New("too large")
	// ErrFull means that a capture has reached the largest number of entries that it may contain.
	ErrFull = errors.New("full")
)

// Damaged returns an error that wraps ErrDamaged. The format and its arguments describe where in the capture
// the damage is, and what is wrong.
func Damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
}
