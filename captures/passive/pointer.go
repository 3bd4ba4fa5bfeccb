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
	// pointerSuffix is appended to the name of the capture to form the name of its pointer.
	pointerSuffix = "-packets"

	// maxPointer limits the size of a pointer file in bytes.
	maxPointer = 8 << 10
)

// A pointer is the JSON content of a file next to a capture, CAPTURE-packets. It exists while the capture is
// being recorded passively, and names the folder with the packets, so that a killed recording can be recovered.
//
// Source: captures/store/FORMAT.md#packets-of-a-passive-recording
type pointer struct {
	// V is the version of this JSON format, always 1.
	V int `json:"v"`
	// Folder is the absolute path of the folder with the packets and TLS keys of the recording.
	Folder string `json:"folder"`
}

// writePointer writes the pointer file of a capture, replacing that of an earlier recorder. folder is the
// folder with the packets.
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

// readPointer returns the folder that the capture's pointer file names; "" if there is no such file.
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

// removePointer deletes the capture's pointer file if it names folder.
func removePointer(capture, folder string) error {
	if to, err := readPointer(capture); err != nil || to != folder {
		// The pointer is another recording's.
		return nil
	}
	if err := os.Remove(capture + pointerSuffix); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
