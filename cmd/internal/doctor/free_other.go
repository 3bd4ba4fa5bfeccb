//go:build !linux && !darwin && !freebsd && !windows

package doctor

import "errors"

// freeBytes returns an error, because free disk space cannot be read on this system.
func freeBytes(string) (uint64, error) { return 0, errors.ErrUnsupported }
