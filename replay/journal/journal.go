// Package journal reads a journal, a file of JSON Lines to which entries are appended, so that a program that was ended
// can go on where it stopped:
//
//	err := journal.Continue(file, 1<<20, func(e Entry) { known[e.Key] = e.Outcome })
//	// file now ends behind the last complete entry; further ones can be written to it.
//
// Limits: the length of a line, which the caller gives.
package journal

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Continue calls read with each entry of a journal, and sets the position of f behind the last complete line. A line
// that is cut off, as a kill may leave it, is removed if f has a method Truncate, as *os.File does. maxLine is the
// greatest length of a line in bytes.
//
// Errors: a complete line that is not an entry, or too long, with its number.
func Continue[Entry any](f io.ReadSeeker, maxLine int, read func(Entry)) error {
	end := int64(0)
	lines := bufio.NewReaderSize(f, 64<<10)
	for n := 1; ; n++ {
		line, err := readLine(lines, maxLine)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		var e Entry
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("line %d is not a journal entry: %w", n, err)
		}
		read(e)
		end += int64(len(line))
	}

	// What is written next must not continue an incomplete line.
	if _, err := f.Seek(end, io.SeekStart); err != nil {
		return err
	}
	if t, ok := f.(interface{ Truncate(int64) error }); ok {
		return t.Truncate(end)
	}
	return nil
}

// readLine returns the next complete line, including its line break. It returns io.EOF if the file ends without one.
func readLine(r *bufio.Reader, maxLine int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxLine:
			return nil, fmt.Errorf("the line has more than %d bytes", maxLine)
		case err == nil:
			return line, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}
