package app

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"syscall"
	"time"

	"unwire/captures/passive"
	"unwire/captures/safetext"
	"unwire/captures/store"
)

// ImportMemory is the process memory in bytes above which an import of packets runs the garbage collector
// aggressively.
const ImportMemory = 192 << 20

// CompleteKilled completes the capture at path if the process that recorded it with 'capture --passive'
// was killed: it imports the packets and TLS keys that the process left behind. For other captures it
// does nothing.
func (a *App) CompleteKilled(ctx context.Context, path string) {
	left, err := passive.FindFor(path)
	if refused, ok := errors.AsType[*passive.RefusedError](err); ok {
		a.SayRefusedPackets(refused.Refusal)
		return
	}
	if errors.Is(err, syscall.ENAMETOOLONG) {
		return // an argument that is a long text, such as that of a note
	}
	if err != nil {
		a.Say("unwire: warning: cannot search for packets that are missing in %s: %v", path, err)
		return
	}
	if left != nil {
		a.Recover(ctx, left, filepath.Dir(path))
	}
}

// SayRefusedPackets prints why a folder that looks like the leftovers of a killed passive recording is
// not imported.
func (a *App) SayRefusedPackets(r passive.Refusal) {
	a.Say("unwire: warning: ignoring the folder %s, which has the name of a passive capture's temporary folder: %s", r.Path, r.Why)
}

// Recover imports the packets of a killed passive recording into its capture, and then deletes them. If
// that fails, it prints the error and keeps the packets. folder is where a new capture is created if the
// folder of the old one no longer exists.
func (a *App) Recover(ctx context.Context, left *passive.Leftover, folder string) {
	if left.Size == 0 {
		a.Say("unwire: removed %s, the empty folder of a killed passive capture", left.Dir)
		if err := left.Remove(); err != nil {
			a.Say("unwire: warning: %v", err)
		}
		return
	}

	// Decoding packets takes more memory than other commands; the limit makes the garbage collector
	// work earlier.
	defer LimitMemory(ImportMemory)()
	a.Say("unwire: importing the packets of a killed passive capture (%s, started %s)", ByteSize(left.Size), left.Started.Local().Format(time.DateTime))
	r, err := left.Recover(ctx, passive.RecoverOptions{Store: a.IndexedWhenClosed(store.Options{}), Folder: folder, Progress: a.PacketProgress()})
	if err == nil && left.Packets != "" {
		err = a.KeepPackets(left.Packets, left.WritePackets)
	}

	// Remember the names before the folder is removed, for the message.
	dir, packets, keys := left.Dir, left.PacketsFile(), left.KeyLogFile()
	if err == nil {
		err = left.Remove()
	} else {
		left.Close()
	}
	switch {
	case err != nil && ctx.Err() != nil:
		// The next command tries again.
	case err != nil:
		a.Say("unwire: %s cannot import the packets and TLS keys that a killed passive capture left in %s: %v", a.Err.Red("error:"), dir, err)
		a.Say("unwire: hint: try 'unwire import %s --keylog %s -o F.uwc', then delete them: rm -r %s", safetext.ShellFile(packets), safetext.ShellFile(keys), safetext.ShellFile(dir))
	case r.Summary.Exchanges == 0:
		a.Say("unwire: removed %s without recovering anything: no exchange in %s, and no TLS key for %d of %s", dir, Counted(r.Summary.Packets, "packet"), r.NoKey, Counted(r.Summary.Connections, "connection"))
	case r.Added+r.Completed == 0:
		a.Say("unwire: %s is complete: no exchange was missing; removed the packets and keys in %s", r.File, dir)
	default:
		a.Say("unwire: %s is complete: %s added, %d truncated ones repaired; removed the packets and keys in %s", r.File, Counted(int64(r.Added), "exchange"), r.Completed, dir)
	}
}

// PacketProgress returns a callback that prints, at most every two seconds, which percentage of the
// packets has been read. Both of its arguments are in bytes.
func (a *App) PacketProgress() func(read, size int64) {
	next := time.Now().Add(progressEvery)
	return func(read, size int64) {
		if now := time.Now(); now.After(next) && size > 0 {
			next = now.Add(progressEvery)
			a.Say("unwire: reading the packets: %d %%", 100*read/size)
		}
	}
}

// KeepPackets has write write packets to a file that contains the TLS keys that decrypt them, and warns
// the user about that.
func (a *App) KeepPackets(name string, write func(io.Writer) error) error {
	if err := WholeFile(name, ForOwner, write); err != nil {
		return err
	}
	a.Say("unwire: warning: %s contains the packets with the TLS keys: whoever has this file can\ndecrypt all traffic, including tokens. Delete the file when you are done", name)
	return nil
}
