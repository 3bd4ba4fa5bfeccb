package app

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"time"

	"unwire/captures/passive"
	"unwire/captures/store"
)

// ImportMemory is from how many bytes on an import of packets collects garbage at once.
const ImportMemory = 192 << 20

// CompleteKilled completes a capture whose passive recorder was killed, if there is one at
// the path.
func (a *App) CompleteKilled(ctx context.Context, path string) {
	left, err := passive.Of(path)
	if refused, ok := errors.AsType[*passive.RefusedError](err); ok {
		a.SayRefusedPackets(refused.Refusal)
		return
	}
	if err != nil {
		a.Say("unwire: warning: not searched for packets that %s lacks: %v", path, err)
		return
	}
	if left != nil {
		a.Recover(ctx, left, filepath.Dir(path))
	}
}

// SayRefusedPackets reports a folder with packets that is left alone.
func (a *App) SayRefusedPackets(r passive.Refusal) {
	a.Say("unwire: warning: %s has the name of a passive capture's folder, but %s: it is left alone", r.Path, r.Why)
}

// Recover completes the capture of what a recorder that was killed has left, and removes
// that. If it fails, what is left stays, and the command goes on. Folder is for a new
// capture, where the old one has no folder any more.
func (a *App) Recover(ctx context.Context, left *passive.Left, folder string) {
	if left.Size == 0 {
		a.Say("unwire: a passive capture that was killed has left no packets: %s is removed", left.Dir)
		if err := left.Remove(); err != nil {
			a.Say("unwire: warning: %v", err)
		}
		return
	}
	defer LimitMemory(ImportMemory)()
	a.Say("unwire: reading the packets of a passive capture that was killed (%s bytes, began %s)", ByteSize(left.Size), left.Started.Local().Format(time.DateTime))
	r, err := left.Recover(ctx, passive.RecoverOptions{Store: a.IndexedWhenClosed(store.Options{}), Folder: folder, Progress: a.PacketProgress()})
	if err == nil && left.Packets != "" {
		err = a.KeepPackets(left.Packets, left.WritePackets)
	}
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
		a.Say("unwire: %s a passive capture that was killed has left packets and TLS keys in %s, and they cannot be imported: %v", a.Err.Red("error:"), dir, err)
		a.Say("unwire: hint: try 'unwire import %s --keylog %s -o F.uwc', then delete them: rm -r %s", packets, keys, dir)
	case r.Summary.Exchanges == 0:
		a.Say("unwire: nothing could be recovered from %s: no exchange in %s, and no key for %d of %s; it is removed", dir, Counted(r.Summary.Packets, "packet"), r.NoKey, Counted(r.Summary.Connections, "connection"))
	case r.Added+r.Completed == 0:
		a.Say("unwire: %s is complete: nothing was missing; the packets and keys in %s are removed", r.File, dir)
	default:
		a.Say("unwire: %s is complete: %s added, %d that had been cut off completed; the packets and keys in %s are removed", r.File, Counted(int64(r.Added), "exchange"), r.Completed, dir)
	}
}

// PacketProgress returns what reports from time to time how much of a recording was read.
func (a *App) PacketProgress() func(read, size int64) {
	next := time.Now().Add(ProgressEvery)
	return func(read, size int64) {
		if now := time.Now(); now.After(next) && size > 0 {
			next = now.Add(ProgressEvery)
			a.Say("unwire: reading the packets: %d %%", 100*read/size)
		}
	}
}

// KeepPackets writes packets to a file, with the secrets that open them.
func (a *App) KeepPackets(name string, write func(io.Writer) error) error {
	if err := WholeFile(name, ForOwner, write); err != nil {
		return err
	}
	a.Say("unwire: warning: %s holds the packets and the secrets that open them, tokens included: whoever\nhas it reads them all; delete it when you are done", name)
	return nil
}
