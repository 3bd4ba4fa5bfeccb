package passive

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Names of the files in a folder.
const (
	packetsFile = "packets.pcapng"
	// keysFile is a key log in NSS format.
	keysFile     = "keys.txt"
	metadataFile = "about.json"
	lockName     = "lock"
	// lockPending is the name of the lock file before it is locked; it is then renamed.
	lockPending = "lock.new"
)

const (
	folderPrefix = "unwire-passive-"

	// minLeftoverAge is how old a folder without a lock file must be to count as left over: a recorder may just
	// be creating a younger one.
	minLeftoverAge = time.Hour
	// maxMetadata is in bytes.
	maxMetadata = 64 << 10
)

// A metadata describes how a capture was to be written.
type metadata struct {
	V       int       `json:"v"`
	Started time.Time `json:"started"`

	// Output is the absolute path of the capture, and Capture its id.
	Output  string `json:"output"`
	Capture []byte `json:"capture"`

	// KeyLog is the absolute path of the user's key log file; "" means keysFile in this folder.
	KeyLog string `json:"keylog,omitempty"`

	// Packets is the absolute path of the file in which the user wants the packets; "" for none.
	Packets string `json:"packets,omitempty"`

	// Begin is the offset of the first packet in packetsFile.
	Begin       int64 `json:"begin"`
	KeepSecrets bool  `json:"keep_secrets,omitempty"`
	// MaxBody is the limit store.Options.MaxBody of the capture.
	MaxBody int64 `json:"max_body,omitempty"`
}

// A folder contains the packets of a command and its TLS keys. This process has locked it; the system releases
// the lock if the process is killed. Folders are in the shared folder for temporary files, where other users can
// create files. So a folder that differs from what createFolder creates is not touched.
type folder struct {
	path string
	root *os.Root
	// lock is the open lock file; nil if the folder has none.
	lock *os.File
}

// A Refusal describes a folder that has the name of a leftover but is not safe to use: its Path,
// and Why.
type Refusal struct{ Path, Why string }

// createFolder creates a folder for packets in dir, and locks it.
func createFolder(dir string) (*folder, error) {
	// MkdirTemp creates it with mode 0700.
	path, err := os.MkdirTemp(dir, folderPrefix)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, errors.Join(err, os.Remove(path))
	}
	f := &folder{path: path, root: root}
	if !supported {
		return f, nil
	}
	if err := f.publishLock(); err != nil {
		return nil, errors.Join(err, f.remove())
	}
	return f, nil
}

// publishLock creates the lock file. The file gets its name only after it is locked, so that nobody finds it
// unlocked.
func (f *folder) publishLock() (err error) {
	if f.lock, err = f.root.OpenFile(lockPending, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600); err != nil {
		return err
	}
	if _, err := tryLock(f.lock); err != nil {
		return err
	}
	return f.root.Rename(lockPending, lockName)
}

// file returns the path of a file in the folder.
func (f *folder) file(name string) string { return filepath.Join(f.path, name) }

// writeMetadata writes how the capture is to be written.
func (f *folder) writeMetadata(a metadata) error {
	data, err := json.Marshal(a)
	if err != nil {
		return err
	}
	return f.root.WriteFile(metadataFile, data, 0o600)
}

// readMetadata reads the file that writeMetadata wrote.
func (f *folder) readMetadata() (a metadata, err error) {
	file, err := f.open(metadataFile)
	if err != nil {
		return a, err
	}
	defer file.Close()
	return a, json.NewDecoder(io.LimitReader(file, maxMetadata)).Decode(&a)
}

// open opens a file of the folder for reading. It refuses symbolic links.
func (f *folder) open(name string) (*os.File, error) {
	before, err := f.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !before.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", f.file(name))
	}
	file, err := f.root.Open(name)
	if err != nil {
		return nil, err
	}

	// Check that the opened file is the one that was examined.
	if after, err := file.Stat(); err != nil || !os.SameFile(before, after) {
		return nil, errors.Join(fmt.Errorf("%s was replaced", f.file(name)), err, file.Close())
	}
	return file, nil
}

// remove deletes the folder and its files. The lock file is deleted last, so that the folder is never unlocked
// while it contains data.
func (f *folder) remove() error {
	defer f.close()
	var failed error
	for _, name := range []string{keysFile, packetsFile, metadataFile, lockPending, lockName} {
		if err := f.root.Remove(name); !errors.Is(err, fs.ErrNotExist) {
			failed = errors.Join(failed, err)
		}
	}
	// os.Remove does not follow links.
	return errors.Join(failed, os.Remove(f.path))
}

// close releases the lock, and keeps the folder and its files.
func (f *folder) close() {
	_ = f.root.Close()
	if f.lock != nil {
		_ = f.lock.Close()
	}
}

// findFolders returns the leftover folders in dir, locked, and those that are not safe to use.
//
// Errors: those of reading dir.
func findFolders(dir string) (left []*folder, refused []Refusal, err error) {
	if !supported {
		return nil, nil, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), folderPrefix) {
			continue
		}

		// A folder that is not safe is reported, but not touched.
		path := filepath.Join(dir, e.Name())
		switch f, why, err := inspect(path); {
		// The folder was removed meanwhile.
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			refused = append(refused, Refusal{path, err.Error()})
		case why != "":
			refused = append(refused, Refusal{path, why})
		case f != nil:
			left = append(left, f)
		}
	}
	return left, refused, nil
}

// inspect locks a folder and returns it, or nil if a recorder is using it. why is set if the folder is not as
// createFolder creates it.
func inspect(path string) (f *folder, why string, err error) {
	// Use Lstat: a symbolic link in a folder that others can write to could lead anywhere.
	info, err := os.Lstat(path)
	if err != nil {
		return nil, "", err
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, "it is a symbolic link", nil
	case !info.IsDir():
		return nil, "it is not a folder", nil
	case !isOwn(info):
		return nil, "it belongs to another user", nil
	case info.Mode().Perm() != 0o700:
		return nil, fmt.Sprintf("its mode is %04o, not 0700", info.Mode().Perm()), nil
	}

	// From here on, use the opened folder: the path could be replaced.
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, "", err
	}
	f = &folder{path: path, root: root}
	opened, err := root.Stat(".")
	if err == nil && !os.SameFile(info, opened) {
		why = "it was replaced"
	}

	// The lock shows whether a recorder still uses the folder.
	var free bool
	if err == nil && why == "" {
		free, why, err = f.lockLeftover(info.ModTime())
	}
	if err != nil || why != "" || !free {
		f.close()
		return nil, why, err
	}
	return f, "", nil
}

// lockLeftover locks the folder if it contains only files that this package creates.
func (f *folder) lockLeftover(modified time.Time) (free bool, why string, err error) {
	names, why, err := f.checkFiles()
	if err != nil || why != "" {
		return false, why, err
	}
	if !slices.Contains(names, lockName) {
		if slices.Contains(names, keysFile) || slices.Contains(names, packetsFile) {
			return false, "it has no lock file: another version of unwire may be recording to it", nil
		}
		return time.Since(modified) > minLeftoverAge, "", nil
	}
	if f.lock, err = f.open(lockName); err != nil {
		return false, "", err
	}
	if locked, err := tryLock(f.lock); err != nil || !locked {
		return false, "", err
	}
	// The previous owner may have deleted the file after we opened it. Then it deletes the folder as well.
	ours, err := f.lock.Stat()
	if err != nil {
		return false, "", err
	}
	there, err := f.root.Lstat(lockName)
	return err == nil && os.SameFile(ours, there), "", err
}

// checkFiles returns the names of the folder's files. why is set if one of them was not created by this package.
func (f *folder) checkFiles() (names []string, why string, err error) {
	entries, err := fs.ReadDir(f.root.FS(), ".")
	if err != nil {
		return nil, "", err
	}

	// Anything else in the folder makes it suspicious.
	known := []string{packetsFile, keysFile, metadataFile, lockName, lockPending}
	for _, e := range entries {
		info, err := f.root.Lstat(e.Name())
		if err != nil {
			return nil, "", err
		}
		switch {
		case !info.Mode().IsRegular():
			return nil, fmt.Sprintf("%q in it is not a regular file", e.Name()), nil
		case !isOwn(info):
			return nil, fmt.Sprintf("%q in it belongs to another user", e.Name()), nil
		case !slices.Contains(known, e.Name()):
			return nil, fmt.Sprintf("it has %q, which unwire does not make", e.Name()), nil
		}
		names = append(names, e.Name())
	}
	return names, "", nil
}
