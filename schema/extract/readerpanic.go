package extract

import (
	"context"
	"fmt"
	"path"
	"runtime"
	"strings"
)

// A Fault is a file that was not read because unwire panicked, which is a defect of unwire whatever the file
// contains.
type Fault struct {
	// File is the path of the file at which unwire failed.
	File string
	// Where is the position of the panic in unwire's source code.
	Where string
	// Cause is the value of the panic.
	Cause any
}

// Error formats the fault for a bug report.
func (f *Fault) Error() string {
	return fmt.Sprintf("%s: unwire failed at %s: %v; this is a fault of unwire, please report it", f.File, f.Where, f.Cause)
}

// read reads a file of a format. A panic affects this file only.
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

// module is the prefix of the names of unwire's own functions.
const module = "unwire/"

// panicSite returns the position in unwire's source code that a panic came from. The deferred function that
// recovers the panic must call it.
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
