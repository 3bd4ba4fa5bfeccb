package record

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"unwire/captures/pcap"
	"unwire/captures/pcapng"
	"unwire/captures/store"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/leftover"
)

// writeAbout says in a passive capture's folder how it was to be written, for
// recoverLeftOver.
func writeAbout(dir *leftover.Folder, f CaptureFlags, o store.Options, record *pcapng.Recording) error {
	about := leftover.About{V: 1, Started: time.Now(), Begin: record.Begin, KeepSecrets: o.KeepSecrets, MaxBody: o.MaxBody}
	for _, file := range []struct {
		name string
		to   *string
	}{{f.Out, &about.Output}, {f.keylog, &about.KeyLog}, {f.packets, &about.Packets}} {
		if file.name == "" {
			continue
		}
		abs, err := filepath.Abs(file.name)
		if err != nil {
			return err
		}
		*file.to = abs
	}
	return dir.WriteAbout(about)
}

// recoverLeftOver imports what passive captures have left that were killed, and
// removes it: packets, and the TLS keys that open them. What fails does not keep
// the next capture from running.
func recoverLeftOver(ctx context.Context, a *app.App, out string) {
	left, refused, err := leftover.Find(os.TempDir())
	if err != nil {
		a.Say("unwire: warning: not searched for packets of killed captures: %v", err)
	}
	for _, r := range refused {
		a.Say("unwire: warning: %s has the name of a passive capture's folder, but %s: it is left alone", r.Path, r.Why)
	}
	for _, dir := range left {
		if err := recoverFolder(ctx, a, dir, out); err != nil {
			a.Say("unwire: %s a passive capture that was killed has left packets and TLS keys in %s, and they cannot be imported: %v", a.Err.Red("error:"), dir.Dir(), err)
			a.Say("unwire: hint: try 'unwire import %s --keylog %s -o F.uwc', then delete them: rm -r %s", dir.Path(leftover.Packets), dir.Path(leftover.Keys), dir.Dir())
		}
		dir.Close()
	}
}

// recoverFolder imports the packets of a folder into a capture of their own, and
// removes the folder. After an error the folder stays.
func recoverFolder(ctx context.Context, a *app.App, dir *leftover.Folder, out string) error {
	record, about, err := openLeft(dir)
	if err != nil {
		return err
	}
	if record == nil {
		a.Say("unwire: a passive capture that was killed has left no packets: %s is removed", dir.Dir())
		return dir.Remove()
	}
	defer record.Close()
	keyLog, err := openLeftKeys(dir, about)
	if err != nil {
		return err
	}
	defer keyLog.Close()
	keys := new(pcap.KeyLog)
	if err := keys.Read(keyLog); err != nil {
		return fmt.Errorf("%s: %w", keyLog.Name(), err)
	}

	a.Say("unwire: reading the packets of a passive capture that was killed (%s, began %s)", app.ByteSize(record.Size), about.Started.Local().Format(time.DateTime))
	stem := recoveredStem(about, out)
	noKey := 0
	sum, err := importPassive(ctx, a, stem+".uwc", a.IndexedWhenClosed(store.Options{KeepSecrets: about.KeepSecrets, MaxBody: about.MaxBody}), record, keys, func(c pcap.Connection) {
		if c.NoKey {
			noKey++
		}
	})
	if errors.Is(err, io.ErrUnexpectedEOF) && sum.Packets > 0 {
		err = nil // the last packet was being written
	}
	if err != nil || sum.Exchanges == 0 {
		if gone := os.Remove(stem + ".uwc"); !errors.Is(gone, fs.ErrNotExist) {
			// it has this import alone
			err = errors.Join(err, gone)
		}
	}
	if err == nil && about.Packets != "" {
		if _, err = keyLog.Seek(0, io.SeekStart); err == nil {
			err = keepPackets(a, stem+".pcapng", record, keyLog)
		}
	}
	if err != nil {
		return err
	}
	if sum.Exchanges > 0 {
		a.Say("unwire: recovered %s in %s; the packets and keys in %s are removed", app.Counted(sum.Exchanges, "exchange"), stem+".uwc", dir.Dir())
		if _, err := os.Stat(about.Output); err == nil {
			a.Say("unwire: hint: %s has the same exchanges as far as they went before the kill: delete what you do not need", about.Output)
		}
	} else {
		a.Say("unwire: nothing could be recovered from %s: no exchange in %s, and no key for %d of %s; it is removed", dir.Dir(), app.Counted(sum.Packets, "packet"), noKey, app.Counted(sum.Connections, "connection"))
	}
	return dir.Remove()
}

// openLeft opens the packets of a folder; nil if it has none.
func openLeft(dir *leftover.Folder) (record *pcapng.Recording, about leftover.About, err error) {
	about, err = dir.About()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, about, nil // killed before there was a packet
	}
	if err != nil {
		return nil, about, err
	}
	file, err := dir.Open(leftover.Packets)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, about, nil
	}
	if err != nil {
		return nil, about, err
	}
	record, err = pcapng.OpenRecording(file, about.Begin)
	return record, about, err
}

// openLeftKeys opens the key log that a killed capture had its command write.
func openLeftKeys(dir *leftover.Folder, about leftover.About) (*os.File, error) {
	if about.KeyLog != "" {
		return os.Open(about.KeyLog)
	}
	return dir.Open(leftover.Keys)
}

// recoveredStem is the path, without an extension, of a new capture next to where
// the killed one was to be written, or where that folder is gone, next to out.
func recoveredStem(about leftover.About, out string) string {
	folder := filepath.Dir(about.Output)
	if info, err := os.Stat(folder); err != nil || !info.IsDir() || about.Output == "" {
		folder = filepath.Dir(out)
	}
	stem := filepath.Join(folder, "unwire-recovered-"+about.Started.Local().Format("20060102-150405"))
	for n, base := 2, stem; ; n++ {
		_, err := os.Lstat(stem + ".uwc")
		_, packetsErr := os.Lstat(stem + ".pcapng")
		if err != nil && packetsErr != nil {
			return stem
		}
		stem = fmt.Sprintf("%s-%d", base, n)
	}
}
