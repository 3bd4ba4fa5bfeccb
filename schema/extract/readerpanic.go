package extract

import (
	"context"
	"fmt"
	"path"
	"runtime"
	"strings"
)

// A Fault is a file that was not read because unwire failed at it: a panic, which
// is a fault of unwire whatever is in the file.
type Fault struct {
	File  string
	Where string // place in unwire's sources
	Cause any    // what it panicked with
}

func (f *Fault) Error() string {
	return fmt.Sprintf("%s: unwire failed at %s: %v; this is a fault of unwire, please report it", f.File, f.Where, f.Cause)
}

// read takes a file apart by its format. A panic costs that file and no other.
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

// module begins the names of unwire's own functions.
const module = "unwire/"

// panicSite returns the place in unwire's sources that a panic came from, if it is
// called by the deferred function that recovers it.
func panicSite() string {
	pcs := make([]uintptr, 256)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	for seen := false; ; {
		frame, more := frames.Next()
		if seen && strings.HasPrefix(frame.Function, module) {
			// unwire/schema/bundle.(*script).tok in …/tok.go
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
