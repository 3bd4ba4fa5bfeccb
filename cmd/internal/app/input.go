package app

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/edsrzf/mmap-go"
	xterm "golang.org/x/term"

	"unwire/cmd/internal/query"
)

// mapped is the size in bytes above which an input is mapped into memory instead of being read.
const mapped = 16 << 20

// MaxText is the largest text, in bytes, that a command parses: text takes several times the bytes of the
// message that it describes.
const MaxText = 8 << 30

// An Input is the whole content of a file or of standard input. Large input is memory-mapped if the
// system supports it, so that only the parts in use occupy memory.
type Input struct {
	// Data is the content. It must not be used after Close.
	Data []byte

	// unmap removes the memory mapping of Data; nil if Data was read into memory.
	unmap func() error

	// released is the number of bytes at the beginning of Data whose memory Release has returned to the
	// system.
	released int
}

// OpenInput opens a file, or standard input if name is "-". Input larger than limit bytes is an error if
// it is memory-mapped. The caller must call Close, and must not use Data after that.
func (a *App) OpenInput(name string, limit int64) (*Input, error) {
	r := a.Input
	var text bytes.Buffer
	if name != "-" {
		f, err := os.Open(name)
		// A missing file whose name has a # is probably a malformed address.
		if file, _, ok := strings.Cut(name, "#"); ok && errors.Is(err, fs.ErrNotExist) && query.IsCapture(file) {
			return nil, Usagef("%s is not an address in %s: write an exchange as %s#7, and a frame as %s#7/up/0 or %s#7/down/0", name, file, file, file, file)
		}
		if err != nil {
			return nil, err
		}
		defer f.Close()
		// Large regular files are mapped into memory, so that only the pages in use count.
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			if info.Size() > mapped {
				return mapInput(f, name, info.Size(), limit)
			}
			text.Grow(int(info.Size()) + bytes.MinRead)
		}
		r = a.Interruptible(f)
	}
	_, err := text.ReadFrom(io.LimitReader(r, mapped+1))
	if pe, ok := errors.AsType[*os.PathError](err); ok {
		return nil, fmt.Errorf("cannot read %s: %w", InputName(name), pe.Err)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", InputName(name), err)
	}

	// What is too large for memory goes through a temporary file.
	if text.Len() <= mapped {
		return &Input{Data: text.Bytes()}, nil
	}
	return spoolInput(io.MultiReader(&text, r), name, limit)
}

// spoolInput copies a pipe to a temporary file without a name, and maps that file into memory.
func spoolInput(r io.Reader, name string, limit int64) (*Input, error) {
	f, err := os.CreateTemp("", "unwire-*")
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", InputName(name), err)
	}
	defer f.Close()
	// At worst, a file stays in the temporary folder.
	defer os.Remove(f.Name()) //nolint:errcheck
	n, err := io.Copy(f, io.LimitReader(r, limit+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", InputName(name), err)
	}
	return mapInput(f, name, n, limit)
}

// mapInput maps a file of size bytes into memory. name is for messages. It is an error if size exceeds
// limit.
func mapInput(f *os.File, name string, size, limit int64) (*Input, error) {
	if size > limit {
		return nil, fmt.Errorf("%s is larger than %d bytes", InputName(name), limit)
	}
	data, err := mmap.MapRegion(f, int(size), mmap.RDONLY, 0, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", InputName(name), err)
	}
	return &Input{Data: data, unmap: data.Unmap}, nil
}

// Release tells the system that the memory of the first off bytes of Data is not needed for now. The
// bytes can still be read; the system then loads them again. It does nothing for input that is not
// memory-mapped.
func (in *Input) Release(off int) {
	const least = 1 << 20
	if in.unmap == nil || off-in.released < least {
		return
	}
	page := os.Getpagesize()
	end := off / page * page
	releasePages(in.Data[in.released:end])
	in.released = end
}

// Close releases Data, and unmaps its memory if it was mapped.
func (in *Input) Close() error {
	if in.unmap == nil {
		return nil
	}
	err := in.unmap()
	in.Data, in.unmap = nil, nil
	return err
}

// FirstBytes returns the first bytes of a file, enough to recognise its format; nil for a folder.
func FirstBytes(name string) ([]byte, error) {
	if info, err := os.Stat(name); err != nil || info.IsDir() {
		return nil, err
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, 64))
}

// MaxInput is the largest file or standard input that is read into memory as a whole, in bytes: 1 GiB.
const MaxInput = 1 << 30

// ReadInput returns the content of a file, or of standard input if name is "-".
func (a *App) ReadInput(name string) ([]byte, error) {
	r := a.Input
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		r = a.Interruptible(f)
	}
	data, err := io.ReadAll(io.LimitReader(r, MaxInput+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", InputName(name), err)
	}
	if len(data) > MaxInput {
		return nil, fmt.Errorf("%s is larger than %d bytes", InputName(name), MaxInput)
	}
	return data, nil
}

// InputName returns the name of an input for messages: "stdin" for "-", and otherwise the path.
func InputName(name string) string {
	if name == "-" {
		return "stdin"
	}
	return name
}

// InputIsTerminal reports whether stdin is a terminal, so that a person can answer questions.
func (a *App) InputIsTerminal() bool {
	f, ok := a.In.(*os.File)
	return ok && xterm.IsTerminal(int(f.Fd()))
}

// Confirm asks the user a yes/no question on the terminal. An empty answer means no.
//
// Errors: if stdin is no terminal, or the answer is no.
func (a *App) Confirm(question string) error {
	if !a.InputIsTerminal() {
		return Fail(ExitUsage, errors.New("cannot ask for confirmation: stdin is not a terminal"),
			"use --yes to confirm, or --dry-run to print the changes without making them")
	}
	fmt.Fprintf(a.Err, "%s [y/N] ", question)
	answer, err := bufio.NewReader(a.Input).ReadString('\n')
	if errors.Is(err, context.Canceled) {
		return err
	}
	if answer = strings.ToLower(strings.TrimSpace(answer)); err != nil || answer != "y" && answer != "yes" {
		return Fail(ExitFinding, errors.New("nothing was changed, because you did not confirm"), "")
	}
	return nil
}
