package doctor

import (
	"context"
	"fmt"
	"os"
	"time"

	"unwire/captures/passive"
)

const (
	littleSpace = 1 << 30  // bytes
	noSpace     = 64 << 20 // bytes
	clockOff    = 5 * time.Second
)

// clock compares the clock with the file system's, and with what it cannot be.
func (m Machine) clock(context.Context) []check {
	const name = "clock"
	now := m.Now()
	if now.Year() < 2025 { // this was written later
		return failed(name, "it is "+now.Format(time.RFC3339), "set the clock: no certificate is valid at that time")
	}
	f, err := os.CreateTemp("", "unwire-doctor-*")
	if err != nil {
		return warn(name, "not compared: "+err.Error(), "make the folder for temporary files writable, or set TMPDIR")
	}
	defer os.Remove(f.Name())
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return warn(name, "not compared: "+err.Error(), "")
	}
	if off := now.Sub(info.ModTime()).Round(time.Second); off > clockOff || off < -clockOff {
		return warn(name, fmt.Sprintf("it is %s off the file system's", off), "set it: times in captures and certificates go by it")
	}
	return ok(name, now.Format(time.RFC3339)+", as the file system has it")
}

// leftOver looks for what passive captures have left that were killed.
func (m Machine) leftOver(context.Context) []check {
	const name = "killed captures"
	left, refused, err := passive.Find(m.TempDir)
	if err != nil {
		return warn(name, "not searched for: "+err.Error(), "make the folder for temporary files readable, or set TMPDIR")
	}
	var all []check
	for _, f := range left {
		f.Close()
		all = append(all, warn(name, f.Dir+" has packets and TLS keys of a passive capture that was killed", "start any 'unwire capture': it completes the capture, and removes them")...)
	}
	for _, r := range refused {
		all = append(all, warn(name, r.Path+" has the name of a passive capture's folder, but "+r.Why, "look at it: unwire leaves it alone")...)
	}
	if len(all) == 0 {
		return ok(name, "none has left packets or keys in "+m.TempDir)
	}
	return all
}

// disk looks at the folder that captures are written to.
func (m Machine) disk(context.Context) []check {
	const name = "this folder"
	f, err := os.CreateTemp(m.Folder, ".unwire-doctor-*")
	if err != nil {
		return warn(name, "cannot be written to", "name another place with 'unwire capture -o'")
	}
	_ = f.Close()
	_ = os.Remove(f.Name())
	free, err := freeBytes(m.Folder)
	switch {
	case err != nil:
		return ok(name, "can be written to")
	case free < noSpace:
		return failed(name, fmt.Sprintf("%d MB are free", free/1e6), "make room, or name another place with 'unwire capture -o'")
	case free < littleSpace:
		return warn(name, fmt.Sprintf("%d MB are free", free/1e6), "long captures need more: see 'unwire capture --max-body' and '--only'")
	}
	return ok(name, fmt.Sprintf("%.1f GB are free", float64(free)/1e9))
}
