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

// Names of the files in the folder of a passive recording.
const (
	// packetsFile contains the recorded packets.
	packetsFile = "packets.pcapng"
	// keysFile contains the TLS secrets in NSS key log format (SSLKEYLOGFILE).
	keysFile = "keys.txt"

	// metadataFile contains the metadata as JSON, and lockName is the file that the recorder locks.
	metadataFile = "about.json"
	lockName     = "lock"
	// lockPending is the name of the lock file before it is locked; it is then renamed.
	lockPending = "lock.new"
)

const (
	// folderPrefix begins the names of folders for packets; a random number follows.
	folderPrefix = "unwire-passive-"

	// minLeftoverAge is the age from which a folder without a lock file counts as left over by a killed
	// recorder. A younger one may just be being created.
	minLeftoverAge = time.Hour
	// maxMetadata limits the size of metadataFile in bytes.
	maxMetadata = 64 << 10
)

// A metadata contains the options of a passive recording, so that its capture can be completed if the recorder
// is killed.
type metadata struct {
	// V is the version of this JSON format, always 1.
	V int `json:"v"`
	// Started is when the recording began.
	Started time.Time `json:"started"`

	// Output is the absolute path of the capture to which the recording is written.
	Output string `json:"output"`
	// Capture is the id stored in the capture, by which recovery recognises that the file at Output is still
	// the same capture.
	Capture []byte `json:"capture"`

	// KeyLog is the absolute path of the user's key log file; "" means keysFile in this folder.
	KeyLog string `json:"keylog,omitempty"`

	// Packets is the absolute path of the file in which the user wants the packets; "" for none.
	Packets string `json:"packets,omitempty"`

	// Begin is the offset of the first packet in packetsFile.
	Begin int64 `json:"begin"`

	// KeepSecrets means that secrets are stored unchanged in the capture, instead of being redacted.
	KeepSecrets bool `json:"keep_secrets,omitempty"`
	// MaxBody is the number of bytes of each body that the capture stores; 0 means all.
	MaxBody int64 `json:"max_body,omitempty"`
}

// A folder is the directory of a passive recording: it contains the packets of a command and its TLS keys. This
// process has locked it; the system releases the lock if the process is killed. Folders are in the shared
// folder for temporary files, where other users can create files. So unwire leaves a folder alone if it differs
// from what createFolder creates.
type folder struct {
	// path is the path of the folder.
	path string
	// root is the opened folder; files in it are accessed only through it, so that symbolic links cannot lead
	// elsewhere.
	root *os.Root
	// lock is the open lock file; nil if the folder has none.
	lock *os.File
}

// A Refusal describes a folder that is named like that of a passive recording but is not safe to use: its Path,
// and Why.
type Refusal struct {
	// Path is the path of the folder that is not safe to use.
	Path string
	// Why is the reason why the folder is not safe to use, as a clause of a sentence.
	Why string
}

// createFolder creates a new folder for packets inside dir, and locks it.
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

// writeMetadata writes the recording's options to metadataFile.
func (f *folder) writeMetadata(a metadata) error {
	data, err := json.Marshal(a)
	if err != nil {
		return err
	}
	return f.root.WriteFile(metadataFile, data, 0o600)
}

// readMetadata reads the options that writeMetadata wrote.
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
		return nil, errors.Join(fmt.Errorf("another program replaced %s", f.file(name)), err, file.Close())
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

// findFolders returns the folders that killed recorders left in dir, locked by this process, and separately
// those that are not safe to use. Folders of running recorders are omitted.
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

// inspect locks the folder of a passive recording and returns it. It returns nil if a recorder is using the
// folder, or if the folder is not as createFolder creates it; then why is the reason.
func inspect(path string) (f *folder, why string, err error) {
	// Use Lstat: a symbolic link in a folder that others can write to could lead anywhere.
	info, err := os.Lstat(path)
	if err != nil {
		return nil, "", err
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, "the folder is a symbolic link", nil
	case !info.IsDir():
		return nil, "the path is not a folder", nil
	case !isOwn(info):
		return nil, "the folder belongs to another user", nil
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
		why = "another program replaced the folder"
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

// lockLeftover locks the folder of a killed recorder. free means that it may be used or removed. why is set if
// the folder contains other files than those this package creates. modified is the folder's modification time.
func (f *folder) lockLeftover(modified time.Time) (free bool, why string, err error) {
	names, why, err := f.checkFiles()
	if err != nil || why != "" {
		return false, why, err
	}
	if !slices.Contains(names, lockName) {
		if slices.Contains(names, keysFile) || slices.Contains(names, packetsFile) {
			return false, "the folder has no lock file: another version of unwire may be recording to it", nil
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

// checkFiles returns the names of the folder's files. why is the reason if one of them is not as this package
// creates it; otherwise "".
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
			return nil, fmt.Sprintf("%q in the folder belongs to another user", e.Name()), nil
		case !slices.Contains(known, e.Name()):
			return nil, fmt.Sprintf("it has %q, which unwire does not make", e.Name()), nil
		}
		names = append(names, e.Name())
	}
	return names, "", nil
}
