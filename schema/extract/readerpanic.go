package extract

import (
	"context"
	"fmt"
	"path"
	"runtime"
	"strings"
)

// A Fault is the error for a file that was not read because unwire panicked. That is a defect of unwire,
// whatever the file contains.
type Fault struct {
	// File is the path of the file that was being read.
	File string
	// Where is the line of unwire's source code where it panicked.
	Where string
	// Cause is the value of the panic.
	Cause any
}

// Error formats the fault for a bug report.
func (f *Fault) Error() string {
	return fmt.Sprintf("%s: unwire failed at %s: %v; this is a fault of unwire, please report it", f.File, f.Where, f.Cause)
}

// read extracts definitions from a file of the format f. A panic is returned as a Fault, so that it affects
// this file only.
//
// Errors: those of the format, and a Fault.
func (c *collector) read(ctx context.Context, f *format, name string, data []byte) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			fault := &Fault{File: name, Where: panicSite(), Cause: cause}
			c.faults = append(c.faults, fault)
			err = fault
		}
	}()
	return f.Read(ctx, c, name, data)
}

// module is the prefix of the package paths of unwire's own functions.
const module = "unwire/"

// panicSite returns the line of unwire's source code from which a panic came. It must be called by the deferred
// function that recovers the panic.
func panicSite() string {
	pcs := make([]uintptr, 256)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	// The first function of unwire below runtime.gopanic is the one that failed.
	for seen := false; ; {
		frame, more := frames.Next()
		if seen && strings.HasPrefix(frame.Function, module) {
			// The name looks like unwire/schema/bundle.(*script).tok.
			dir, base := path.Split(strings.TrimPrefix(frame.Function, module))
			pkg, _, _ := strings.Cut(base, ".")
			return fmt.Sprintf("%s%s/%s:%d", dir, pkg, path.Base(frame.File), frame.Line)
		}
		seen = seen || frame.Function == "runtime.gopanic"
		if !more {
			return "an unknown place"
		}
	}
}
