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

// announcedFile is the name of the file that lists the announced unwire.yaml files, one on each line:
// digest and path.
const announcedFile = "announced"

// Limits of that list, in lines and bytes; the oldest lines are dropped.
const (
	maxAnnounced      = 1000
	maxAnnouncedBytes = 1 << 20
)

// Announce calls say with a summary of the settings in an unwire.yaml, the first time that a file with
// this path and content is used. The folder state stores what was announced; if it cannot be written to,
// the announcement is repeated each time.
func Announce(f *File, state string, say func(text string)) {
	line := f.Digest + "\t" + fmt.Sprintf("%q", f.Path)
	name := filepath.Join(state, announcedFile)
	before := announced(name)
	if slices.Contains(before, line) {
		return
	}
	say("using the settings in " + f.Path + ": " + f.Summary())
	_ = remember(name, append(before, line)) // it is said again
}

// announced returns the lines of the list of earlier announcements; nil if the file cannot be read.
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
