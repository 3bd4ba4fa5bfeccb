package app

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"unwire/cmd/internal/contract"
)

// Print writes an object of the contract as one line of JSON Lines on stdout.
func (a *App) Print(o contract.Object) error {
	return contract.NewEncoder(a.Out).Encode(o)
}

// Say writes talk for people to stderr, on a terminal within its width. Errors among the arguments are written as plainText has
// them.
func (a *App) Say(format string, args ...any) {
	for i, arg := range args {
		if err, ok := arg.(error); ok && err != nil {
			args[i] = plainText(err)
		}
	}
	a.Err.Sayf(format+"\n", args...)
}

// Counted is a number with what it counts: "1 frame", "2 frames".
func Counted[N int | int64](n N, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// WriteBinary writes bytes to stdout, but not onto a terminal unless that was
// asked for with -o -.
func (a *App) WriteBinary(data []byte, out string) error {
	switch {
	case out != "" && out != "-":
		err := WholeFile(out, ForOwner, func(w io.Writer) error { _, err := w.Write(data); return err })
		if err != nil {
			return fmt.Errorf("write result: %w", err)
		}
		return nil
	case out == "" && a.Out.TTY:
		return Fail(ExitUsage, errors.New("the result is binary and stdout is a terminal"), "name a file with -o FILE, or say -o -")
	}
	_, err := a.Out.Write(data)
	return err
}

// ConfigDir is where unwire keeps its CA: UNWIRE_CONFIG, or unwire/ in the
// user's configuration folder.
func ConfigDir() (string, error) {
	if dir := os.Getenv("UNWIRE_CONFIG"); dir != "" {
		return dir, nil
	}
	base, err := os.UserConfigDir()
	if err != nil {
		return "", Fail(ExitInput, fmt.Errorf("no folder for the CA: %w", err), "set UNWIRE_CONFIG to a folder")
	}
	return filepath.Join(base, "unwire"), nil
}

func ByteSize(n int64) string {
	switch {
	case n < 10_000:
		return strconv.FormatInt(n, 10)
	case n < 10_000_000:
		return fmt.Sprintf("%.1fk", float64(n)/1000)
	}
	return fmt.Sprintf("%.1fM", float64(n)/1e6)
}

// ProgressEvery is how often a long run reports how far it is.
const ProgressEvery = 2 * time.Second

func Millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// NamesFolder reports whether the name of an output is that of a folder: it ends in a
// slash, or the folder is there.
func NamesFolder(out string) bool {
	if out == "" {
		return false
	}
	if os.IsPathSeparator(out[len(out)-1]) || out[len(out)-1] == '/' {
		return true
	}
	info, err := os.Stat(out)
	return err == nil && info.IsDir()
}
