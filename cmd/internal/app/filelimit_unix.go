//go:build unix

package app

import (
	"os"
	"os/signal"
	"syscall"
)

// SurviveFileLimit makes a write beyond the shell's file size limit (ulimit -f) fail with an error,
// instead of ending the program by a signal. Child processes that are started in the meantime keep the
// default behaviour. restore undoes it.
func SurviveFileLimit() (restore func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGXFSZ)
	return func() { signal.Stop(c) }
}
