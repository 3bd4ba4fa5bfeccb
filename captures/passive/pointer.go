package passive

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

const (
	// pointerSuffix is what the name of a pointer has behind that of the capture.
	pointerSuffix = "-packets"

	maxPointer = 8 << 10 // bytes
)

// A pointer is the file next to a capture that says where the packets are of which it is
// being made.
//
// Source: captures/store/FORMAT.md#packets-of-a-passive-recording
type pointer struct {
	V      int    `json:"v"`
	Folder string `json:"folder"`
}

// writePointer says where the packets of a capture are. What an earlier recorder has left is
// replaced.
func writePointer(capture, folder string) error {
	data, err := json.Marshal(pointer{1, folder})
	if err != nil {
		return err
	}
	name := capture + pointerSuffix
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(data, '\n'))
	return errors.Join(err, f.Close())
}

// readPointer returns the folder with the packets of a capture; "" for none.
func readPointer(capture string) (folder string, err error) {
	name := capture + pointerSuffix
	info, err := os.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a regular file", name)
	}
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	var p pointer
	if err := json.NewDecoder(io.LimitReader(f, maxPointer)).Decode(&p); err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return p.Folder, nil
}

// removePointer removes the pointer of a capture to a folder.
func removePointer(capture, folder string) error {
	if to, err := readPointer(capture); err != nil || to != folder {
		return nil // it is not ours
	}
	if err := os.Remove(capture + pointerSuffix); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
