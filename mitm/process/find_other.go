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
	questioner struct {
		// file is unused on this system.
		file *os.File
	}
	search struct{}
)

// openQuestions returns an error, because this system offers no way to query sockets.
func openQuestions() (*os.File, error) { return nil, errors.ErrUnsupported }

// mayInspect returns false, because the owner of a socket cannot be looked up on this system.
func mayInspect(socket) bool { return false }

// socketOf returns an error, because this system offers no way to query sockets.
func (*questioner) socketOf(net.Conn) (socket, error) { return socket{}, errors.ErrUnsupported }

// close does nothing.
func (*questioner) close() {}

// find does nothing, because programs cannot be looked up on this system.
func (*search) find(time.Time, map[uint32][]*lookup) {}

// descends returns false, because the parent of a process is not looked up on this system.
func descends(int) bool { return false }
