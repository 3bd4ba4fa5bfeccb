//go:build !linux

package process

import (
	"errors"
	"net"
	"os"
	"time"
)

// questioner and search do nothing, because this package does not support looking up programs on this system.
type (
	questioner struct{ file *os.File }
	search     struct{}
)

// openQuestions returns an error.
func openQuestions() (*os.File, error) { return nil, errors.ErrUnsupported }

// mayInspect returns false.
func mayInspect(socket) bool { return false }

// socketOf returns an error.
func (*questioner) socketOf(net.Conn) (socket, error) { return socket{}, errors.ErrUnsupported }

// close does nothing.
func (*questioner) close() {}

// find does nothing.
func (*search) find(time.Time, map[uint32][]*lookup) {}

// descends returns false.
func descends(int) bool { return false }
