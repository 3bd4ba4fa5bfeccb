package cli

import "runtime/debug"

// limitMemory has garbage collected before an input has grown beyond so many
// bytes of memory, and returns what undoes that.
func limitMemory(most int64) func() {
	before := debug.SetMemoryLimit(-1)
	debug.SetMemoryLimit(min(before, most))
	return func() { debug.SetMemoryLimit(before) }
}
