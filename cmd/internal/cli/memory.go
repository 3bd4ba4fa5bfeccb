package cli

import (
	"os"
	"runtime/debug"
)

// Frames leave garbage and hardly anything else: more of it may lie than usual, up
// to a bound for all memory.
const (
	inferGarbage = 400 // percent of what lives
	inferMemory  = 512 << 20
)

// limitMemory has garbage collected before an input has grown beyond so many
// bytes of memory, and returns what undoes that.
func limitMemory(most int64) func() {
	before := debug.SetMemoryLimit(-1)
	debug.SetMemoryLimit(min(before, most))
	return func() { debug.SetMemoryLimit(before) }
}

// collectLess collects garbage less often while the heap is below memory bytes,
// unless GOGC is set, and returns a function that undoes it.
func collectLess(memory int64) func() {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	unlimit, percent := limitMemory(memory), debug.SetGCPercent(inferGarbage)
	return func() {
		debug.SetGCPercent(percent)
		unlimit()
	}
}
