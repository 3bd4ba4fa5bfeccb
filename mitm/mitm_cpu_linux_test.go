package mitm

import (
	"syscall"
	"time"
)

// processorTime is what this process has used, with client, server and proxies.
func processorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
