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

// Files of a folder.
const (
	packetsFile = "packets.pcapng"
	keysFile    = "keys.txt" // an NSS key log
	aboutFile   = "about.json"
	lockName    = "lock"
	lockPending = "lock.new" // the lock file before it is locked
)

const (
	prefix = "unwire-passive-"

	// newest is how old a folder without a lock file has to be before it
	// counts as left over, because a recorder may just be creating a younger one.
	newest   = time.Hour
	maxAbout = 64 << 10 // bytes
)

// An about says how a capture was to be written.
type about struct {
	V       int       `json:"v"`
	Started time.Time `json:"started"`

	// Output is an absolute path, and Capture the identifier of the capture there.
	Output  string `json:"output"`
	Capture []byte `json:"capture"`

	// KeyLog is what was asked for, an absolute path; "" is keysFile.
	KeyLog string `json:"keylog,omitempty"`

	// Packets is the file that was to keep the packets, an absolute path; "" for none.
	Packets string `json:"packets,omitempty"`

	// Begin is the offset of the first packet in packetsFile.
	Begin       int64 `json:"begin"`
	KeepSecrets bool  `json:"keep_secrets,omitempty"`
	MaxBody     int64 `json:"max_body,omitempty"` // bytes; 0: all
}

// A folder has the packets of a command, and the TLS keys that open them. This process has
// locked it. It is in the folder for temporary files, which others can write to, and the
// system releases its lock when the recorder dies, however it dies. What is not exactly what
// createFolder makes is left alone.
type folder struct {
	path string
	root *os.Root
	lock *os.File // nil: it has none
}

// A Refusal is of a folder that has the name of one with packets, but is left alone.
type Refusal struct{ Path, Why string }

// createFolder makes a folder in dir, locked until it is removed or this process ends.
func createFolder(dir string) (*folder, error) {
	path, err := os.MkdirTemp(dir, prefix) // mode 0700
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

// publishLock makes the lock file. It has its name only when it is locked, so
// that nobody finds it free before.
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

// writeAbout says how the capture is to be written.
func (f *folder) writeAbout(a about) error {
	data, err := json.Marshal(a)
	if err != nil {
		return err
	}
	return f.root.WriteFile(aboutFile, data, 0o600)
}

// about returns what writeAbout said.
func (f *folder) about() (a about, err error) {
	file, err := f.open(aboutFile)
	if err != nil {
		return a, err
	}
	defer file.Close()
	return a, json.NewDecoder(io.LimitReader(file, maxAbout)).Decode(&a)
}

// open opens a file of the folder, which is not a link, to read it.
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
	if after, err := file.Stat(); err != nil || !os.SameFile(before, after) {
		return nil, errors.Join(fmt.Errorf("%s was replaced", f.file(name)), err, file.Close())
	}
	return file, nil
}

// remove removes the folder with what is in it: the lock last, so that the folder is
// never without a lock while it holds something.
func (f *folder) remove() error {
	defer f.close()
	var failed error
	for _, name := range []string{keysFile, packetsFile, aboutFile, lockPending, lockName} {
		if err := f.root.Remove(name); !errors.Is(err, fs.ErrNotExist) {
			failed = errors.Join(failed, err)
		}
	}
	return errors.Join(failed, os.Remove(f.path)) // which does not follow a link
}

// close frees the lock, and leaves the folder as it is.
func (f *folder) close() {
	_ = f.root.Close()
	if f.lock != nil {
		_ = f.lock.Close()
	}
}

// findFolders returns the folders in dir whose captures have ended without removing
// them, locked, and those with such a name that are left alone.
//
// Errors: of reading dir.
func findFolders(dir string) (left []*folder, refused []Refusal, err error) {
	if !supported {
		return nil, nil, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), prefix) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		switch f, why, err := inspect(path); {
		case errors.Is(err, fs.ErrNotExist): // it was removed meanwhile
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

// inspect returns a folder if nobody records to it; nil if somebody does. why
// says in what it is not what createFolder makes.
func inspect(path string) (f *folder, why string, err error) {
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
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, "", err
	}
	f = &folder{path: path, root: root}
	opened, err := root.Stat(".")
	if err == nil && !os.SameFile(info, opened) {
		why = "it was replaced"
	}
	var free bool
	if err == nil && why == "" {
		free, why, err = f.take(info.ModTime())
	}
	if err != nil || why != "" || !free {
		f.close()
		return nil, why, err
	}
	return f, "", nil
}

// take locks a folder that has nothing in it but what createFolder and a capture make.
func (f *folder) take(modified time.Time) (free bool, why string, err error) {
	names, why, err := f.files()
	if err != nil || why != "" {
		return false, why, err
	}
	if !slices.Contains(names, lockName) {
		if slices.Contains(names, keysFile) || slices.Contains(names, packetsFile) {
			return false, "it has no lock file: another version of unwire may be recording to it", nil
		}
		return time.Since(modified) > newest, "", nil
	}
	if f.lock, err = f.open(lockName); err != nil {
		return false, "", err
	}
	if locked, err := tryLock(f.lock); err != nil || !locked {
		return false, "", err
	}
	// Who had it before may have removed the file between our opening it and
	// locking it: then the folder goes as well.
	ours, err := f.lock.Stat()
	if err != nil {
		return false, "", err
	}
	there, err := f.root.Lstat(lockName)
	return err == nil && os.SameFile(ours, there), "", err
}

// files lists what is in a folder. why says what is in it that is not a file of
// a capture.
func (f *folder) files() (names []string, why string, err error) {
	entries, err := fs.ReadDir(f.root.FS(), ".")
	if err != nil {
		return nil, "", err
	}
	known := []string{packetsFile, keysFile, aboutFile, lockName, lockPending}
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
