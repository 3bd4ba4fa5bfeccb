package captures

import (
	"errors"
	"fmt"
)

// Errors on which callers branch. They come wrapped, with the path of the file and the cause.
var (
	// ErrNotCapture is the error for a file that is not an unwire capture.
	ErrNotCapture = errors.New("the file is not an unwire capture")
	// ErrNewerFormat is the error for a capture whose format version is newer than this program reads.
	ErrNewerFormat = errors.New("a newer version of unwire wrote the file")
	// ErrOlderFormat is the error for a capture whose format must be upgraded first.
	ErrOlderFormat = errors.New("an older version of unwire wrote the file")
	// ErrDamaged is the error for a capture whose contents contradict the format.
	ErrDamaged = errors.New("the capture is damaged")
	// ErrNoExchange is the error for an exchange ID that the capture does not contain.
	ErrNoExchange = errors.New("the exchange does not exist")
	// ErrNoFolder is the error for a capture to be created in a folder that does not exist.
	ErrNoFolder = errors.New("the folder does not exist")
	// ErrInUse is the error for a capture that another process is recording to.
	ErrInUse = errors.New("another process is recording to this capture")
	// ErrReadOnly is the error for a write to a capture that was opened for reading.
	ErrReadOnly = errors.New("the capture was opened for reading only")
	// ErrClosed is the error for the use of a closed capture.
	ErrClosed = errors.New("the capture is closed")
	// ErrGone means that the file was deleted or moved while it was being recorded to.
	ErrGone = errors.New("the capture was deleted or moved during the recording")
	// ErrTooLarge means that data in a capture exceeds a limit for reading.
	ErrTooLarge = errors.New("the data is too large")
	// ErrFull means that a capture has reached the largest number of entries that it may contain.
	ErrFull = errors.New("the capture is full")
)

// NoExchange returns an error that wraps ErrNoExchange and has the ID of the exchange.
func NoExchange(id int64) error { return noExchange(id) }

// noExchange is the ID of an exchange that does not exist.
type noExchange int64

// Error names the exchange.
func (id noExchange) Error() string { return fmt.Sprintf("exchange %d does not exist", int64(id)) }

// Unwrap returns ErrNoExchange.
func (noExchange) Unwrap() error { return ErrNoExchange }

// Damaged returns an error that wraps ErrDamaged. The format and its arguments describe where in the capture
// the damage is, and what is wrong.
func Damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
}
