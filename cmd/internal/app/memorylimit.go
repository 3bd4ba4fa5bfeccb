package app

import (
	"os"
	"runtime/debug"
)

// Frames leave garbage and hardly anything else: more of it may lie than usual, up
// to a bound for all memory.
const (
	inferGarbage = 400 // percent of what lives
	InferMemory  = 512 << 20
)

// LimitMemory has garbage collected before an input has grown beyond so many
// bytes of memory, and returns what undoes that.
func LimitMemory(most int64) func() {
	before := debug.SetMemoryLimit(-1)
	debug.SetMemoryLimit(min(before, most))
	return func() { debug.SetMemoryLimit(before) }
}

// CollectLess collects garbage less often while the heap is below memory bytes,
// unless GOGC is set, and returns a function that undoes it.
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
