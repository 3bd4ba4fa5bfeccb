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

// mapped is how large an input is that is mapped into memory, not read.
const mapped = 16 << 20

// MaxText bounds the text that is read back: of what is read it takes several times
// the bytes.
const MaxText = 8 << 30

// An Input is all of a file or of stdin. What is large is mapped where the
// system can do that: it takes memory only as far as it is looked at.
type Input struct {
	// Data are the bytes of the input; not valid after Close.
	Data     []byte
	unmap    func() error
	released int
}

// OpenInput opens a file, or stdin for "-". It has to be closed, and Data is
// not to be used after that. It has at most limit bytes.
func (a *App) OpenInput(name string, limit int64) (*Input, error) {
	r := a.Input
	if name != "-" {
		f, err := os.Open(name)
		// A missing file whose name has a # is probably a malformed address.
		if file, _, ok := strings.Cut(name, "#"); ok && errors.Is(err, fs.ErrNotExist) && query.IsCapture(file) {
			return nil, Usagef("%s is not an address in %s: an exchange is %s#7, a frame is %s#7/up/0 or %s#7/down/0", name, file, file, file, file)
		}
		if err != nil {
			return nil, err
		}
		defer f.Close()
		// Large regular files are mapped into memory, so that only the pages in use count.
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() && info.Size() > mapped {
			return mapInput(f, name, info.Size(), limit)
		}
		r = a.Interruptible(f)
	}
	data, err := io.ReadAll(io.LimitReader(r, mapped+1))
	if pe, ok := errors.AsType[*os.PathError](err); ok {
		return nil, fmt.Errorf("read %s: %w", InputName(name), pe.Err)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", InputName(name), err)
	}

	// What is too large for memory goes through a temporary file.
	if len(data) <= mapped {
		return &Input{Data: data}, nil
	}
	return spoolInput(io.MultiReader(bytes.NewReader(data), r), name, limit)
}

// spoolInput copies a pipe to a temporary file without a name, and maps that file into memory.
func spoolInput(r io.Reader, name string, limit int64) (*Input, error) {
	f, err := os.CreateTemp("", "unwire-*")
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", InputName(name), err)
	}
	defer f.Close()
	// At worst, a file stays in the temporary folder.
	defer os.Remove(f.Name()) //nolint:errcheck
	n, err := io.Copy(f, io.LimitReader(r, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", InputName(name), err)
	}
	return mapInput(f, name, n, limit)
}

func mapInput(f *os.File, name string, size, limit int64) (*Input, error) {
	if size > limit {
		return nil, fmt.Errorf("%s is larger than %d bytes", InputName(name), limit)
	}
	data, err := mmap.MapRegion(f, int(size), mmap.RDONLY, 0, 0)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", InputName(name), err)
	}
	return &Input{Data: data, unmap: data.Unmap}, nil
}

// Release gives the memory of the first off bytes back. They may be looked at
// again.
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

// FirstBytes is the beginning of a file; a folder has none.
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
		return nil, fmt.Errorf("read %s: %w", InputName(name), err)
	}
	if len(data) > MaxInput {
		return nil, fmt.Errorf("%s is larger than %d bytes", InputName(name), MaxInput)
	}
	return data, nil
}

// InputName is the name of an input in messages: "stdin" for "-".
func InputName(name string) string {
	if name == "-" {
		return "stdin"
	}
	return name
}

// Confirm asks the user a yes/no question on the terminal. An empty answer means no.
//
// Errors: if stdin is no terminal, or the answer is no.
func (a *App) Confirm(question string) error {
	f, ok := a.In.(*os.File)
	if !ok || !xterm.IsTerminal(int(f.Fd())) {
		return Fail(ExitUsage, errors.New("cannot ask for confirmation: stdin is not a terminal"),
			"use --yes to confirm, or --dry-run to print the steps")
	}
	fmt.Fprintf(a.Err, "%s [y/N] ", question)
	answer, err := bufio.NewReader(a.Input).ReadString('\n')
	if errors.Is(err, context.Canceled) {
		return err
	}
	if answer = strings.ToLower(strings.TrimSpace(answer)); err != nil || answer != "y" && answer != "yes" {
		return Fail(ExitFinding, errors.New("not confirmed: nothing was changed"), "")
	}
	return nil
}
