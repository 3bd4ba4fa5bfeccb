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

// The limits of the remembered announcements; the oldest are dropped.
const (
	maxAnnounced      = 1000
	maxAnnouncedBytes = 1 << 20
)

// Announce calls say with a description of the settings in an unwire.yaml, the first time that a file
// with this content is used. The folder state stores which contents were announced; if that folder
// cannot be written, the announcement is repeated each time.
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

// announced reads the list of earlier announcements from a file.
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

// remember writes the list of announcements to a file.
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
