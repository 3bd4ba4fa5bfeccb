package record

import (
	"errors"
	"fmt"
	"io"
	"os"

	"unwire/cmd/internal/app"
)

// A keyLog is the TLS key log file that --write-keylog names. A nil keyLog writes nothing.
type keyLog struct {
	// file is the file, open for appending.
	file *os.File
}

// openKeyLog opens a TLS key log file for appending, readable by its owner only, and warns the user about
// its content. It returns nil if path is "".
func openKeyLog(a *app.App, path string) (*keyLog, error) {
	if path == "" {
		return nil, nil
	}
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return nil, app.Fail(app.ExitInput, fmt.Errorf("--write-keylog: %s is not a regular file", path), "")
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.Chmod(0o600); err != nil { // it may have been there
		return nil, errors.Join(err, f.Close())
	}
	a.Say("unwire: warning: unwire writes the TLS keys of every connection to %s: whoever has this file and\nthe packets can decrypt all traffic, including tokens. Delete the file when you are done", path)
	return &keyLog{f}, nil
}

// writer returns the file, or a nil interface if there is none.
func (k *keyLog) writer() io.Writer {
	if k == nil {
		return nil // an interface without a value: nothing is written
	}
	return k.file
}

// Close closes the file.
func (k *keyLog) Close() error {
	if k == nil {
		return nil
	}
	return k.file.Close()
}
