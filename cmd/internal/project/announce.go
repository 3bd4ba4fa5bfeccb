package project

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// announcedFile has the files that were announced, a line each: the digest and the path.
const announcedFile = "announced"

// Bounds of what is remembered; of more the oldest is forgotten.
const (
	maxAnnounced      = 1000
	maxAnnouncedBytes = 1 << 20
)

// Announce calls say with what a file changes, unless it was said of this content before.
// That is remembered in the folder state; where it cannot be, it is said again.
func Announce(f *File, state string, say func(text string)) {
	line := f.Digest + "\t" + fmt.Sprintf("%q", f.Path)
	name := filepath.Join(state, announcedFile)
	before := announced(name)
	if slices.Contains(before, line) {
		return
	}
	say("using " + f.Path + ": " + f.Summary())
	_ = remember(name, append(before, line)) // it is said again
}

// announced are the lines of what was announced.
func announced(name string) []string {
	f, err := os.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxAnnouncedBytes))
	if err != nil {
		return nil
	}
	return strings.FieldsFunc(string(data), func(r rune) bool { return r == '\n' })
}

// remember writes the lines of what was announced.
func remember(name string, lines []string) (err error) {
	if n := len(lines) - maxAnnounced; n > 0 {
		lines = lines[n:]
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(name), announcedFile+"-*")
	if err != nil {
		return err
	}
	_, err = io.WriteString(temp, strings.Join(lines, "\n")+"\n")
	if err = errors.Join(err, temp.Close()); err == nil {
		err = os.Rename(temp.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp.Name()))
	}
	return nil
}
