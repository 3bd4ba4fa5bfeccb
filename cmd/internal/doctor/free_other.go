//go:build !linux && !darwin && !freebsd && !windows

package doctor

import "errors"

// freeBytes returns an error, because this program cannot read the free disk space on this system.
func freeBytes(string) (uint64, error) { return 0, errors.ErrUnsupported }
