//go:build unix

package app

import (
	"os"
	"os/signal"
	"syscall"
)

// SurviveFileLimit makes a write past the shell's file size limit (ulimit -f)
// an error of that write, where it would end the program. Commands that are
// started meanwhile have the default again.
func SurviveFileLimit() (restore func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGXFSZ)
	return func() { signal.Stop(c) }
}
