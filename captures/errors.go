package captures

import (
	"errors"
	"fmt"
)

// The errors a caller branches on. They come wrapped, with the path of the
// file and what is wrong with it.
var (
	ErrNotCapture  = errors.New("not an unwire capture")
	ErrNewerFormat = errors.New("written by a newer unwire")
	ErrOlderFormat = errors.New("written by an older unwire")
	ErrDamaged     = errors.New("damaged capture")
	ErrNoExchange  = errors.New("no such exchange")
	ErrNoFolder    = errors.New("no such folder")
	ErrInUse       = errors.New("already being recorded to")
	ErrReadOnly    = errors.New("opened for reading only")
	ErrClosed      = errors.New("closed")
	ErrGone        = errors.New("deleted or moved while recording")
	ErrTooLarge    = errors.New("too large")
	ErrFull        = errors.New("full")
)

// Damaged is an ErrDamaged with the place and the reason.
func Damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
}
