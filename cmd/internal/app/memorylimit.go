package app

import (
	"os"
	"runtime/debug"
)

// Settings of the garbage collector for commands whose memory is mostly short-lived garbage, such as
// decoded frames: it runs less often than by default, but never lets the process exceed a limit.
const (
	inferGarbage = 400 // percent of what lives
	InferMemory  = 384 << 20

	// WholeMemory is for commands that hold whole decoded inputs and release their parts one after the other.
	WholeMemory = 320 << 20
)

// LimitMemory lowers the memory limit of the Go runtime to most bytes, which makes the garbage collector
// work harder near that limit. It returns a function that restores the former limit.
func LimitMemory(most int64) func() {
	before := debug.SetMemoryLimit(-1)
	debug.SetMemoryLimit(min(before, most))
	return func() { debug.SetMemoryLimit(before) }
}

// CollectLess makes the garbage collector run less often while the process uses less than memory bytes,
// unless the user has set GOGC. It returns a function that restores the former settings.
func CollectLess(memory int64) func() {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	unlimit, percent := LimitMemory(memory), debug.SetGCPercent(inferGarbage)
	return func() {
		debug.SetGCPercent(percent)
		unlimit()
	}
}
