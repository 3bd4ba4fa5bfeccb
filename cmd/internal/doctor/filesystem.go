package doctor

import (
	"context"
	"fmt"
	"os"
	"time"

	"unwire/captures/passive"
)

// Limits of the checks: free disk space in bytes below which disk warns (littleSpace) or fails (noSpace),
// and the clock's greatest difference from the file system (clockOff).
const (
	littleSpace = 1 << 30  // bytes
	noSpace     = 64 << 20 // bytes
	clockOff    = 5 * time.Second
)

// clock checks that the system clock agrees with the time stamps of new files, and is not obviously
// wrong.
func (m Machine) clock(context.Context) []check {
	const name = "clock"
	now := m.Now()
	if now.Year() < 2025 { // this was written later
		return failed(name, "the clock shows "+now.Format(time.RFC3339), "set the clock: certificates are not valid at this time")
	}
	f, err := os.CreateTemp("", "unwire-doctor-*")
	if err != nil {
		return warn(name, "cannot compare the clock with the file system: "+err.Error(), "make the temporary folder writable, or set TMPDIR")
	}
	defer os.Remove(f.Name())
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return warn(name, "cannot compare the clock with the file system: "+err.Error(), "")
	}
	if off := now.Sub(info.ModTime()).Round(time.Second); off > clockOff || off < -clockOff {
		return warn(name, fmt.Sprintf("the clock differs by %s from the time of a new file", off), "set the clock: unwire uses it for captures and certificates")
	}
	return ok(name, now.Format(time.RFC3339)+"; new files get the same time")
}

// leftOver checks for packets and TLS keys that passive captures left behind because they were killed.
func (m Machine) leftOver(context.Context) []check {
	const name = "killed captures"
	left, refused, err := passive.Find(m.TempDir)
	if err != nil {
		return warn(name, "cannot search for leftovers: "+err.Error(), "make the temporary folder readable, or set TMPDIR")
	}
	var all []check
	for _, f := range left {
		f.Close()
		all = append(all, warn(name, f.Dir+" contains packets and TLS keys of a killed passive capture", "run any 'unwire capture': it completes the killed capture, and removes the packets and keys")...)
	}
	for _, r := range refused {
		all = append(all, warn(name, r.Path+" has the name of a passive capture's temporary folder, but "+r.Why, "check the folder: unwire does not use or delete it")...)
	}
	if len(all) == 0 {
		return ok(name, "no leftover packets or keys in "+m.TempDir)
	}
	return all
}

// disk checks that the folder for captures is writable and has free space.
func (m Machine) disk(context.Context) []check {
	const name = "this folder"
	f, err := os.CreateTemp(m.Folder, ".unwire-doctor-*")
	if err != nil {
		return warn(name, "not writable", "name a file in another folder with 'unwire capture -o'")
	}
	_ = f.Close()
	_ = os.Remove(f.Name())
	free, err := freeBytes(m.Folder)
	switch {
	case err != nil:
		return ok(name, "writable")
	case free < noSpace:
		return failed(name, fmt.Sprintf("%d MB are free", free/1e6), "free disk space, or name a file on another disk with 'unwire capture -o'")
	case free < littleSpace:
		return warn(name, fmt.Sprintf("%d MB are free", free/1e6), "long captures need more; 'unwire capture --max-body' and '--only' reduce the size")
	}
	return ok(name, fmt.Sprintf("%.1f GB are free", float64(free)/1e9))
}
