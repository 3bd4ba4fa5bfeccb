package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"unwire/captures/safetext"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/progress"
	"unwire/cmd/internal/query"
	"unwire/cmd/internal/term"
)

// Print writes one object of the JSON output (--json) as a line on stdout.
func (a *App) Print(o contract.Object) error {
	return contract.NewEncoder(a.Out).Encode(o)
}

// Say writes a diagnostic message to stderr, wrapped to the width of the terminal. Error arguments are
// formatted by PlainText, and cleaned for the terminal.
func (a *App) Say(format string, args ...any) {
	for i, arg := range args {
		if err, ok := arg.(error); ok && err != nil {
			args[i] = term.CleanText(PlainText(err))
		}
	}
	a.Err.Sayf(format+"\n", args...)
}

// Counted formats a number with a noun in singular or plural, such as "1 frame" or "2 frames".
func Counted[N int | int64](n N, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// WriteBinary writes bytes to the file out, or to stdout if out is "" or "-". It refuses to write to a
// terminal unless out is "-".
func (a *App) WriteBinary(data []byte, out string) error {
	switch {
	case out != "" && out != "-":
		err := WholeFile(out, ForOwner, func(w io.Writer) error { _, err := w.Write(data); return err })
		if err != nil {
			return fmt.Errorf("cannot write the result: %w", err)
		}
		return nil
	case out == "" && a.Out.TTY:
		return Fail(ExitUsage, errors.New("the output is binary, so unwire does not write it to a terminal"), "write to a file with -o FILE, or force output with -o -")
	}
	_, err := a.Out.Write(data)
	return err
}

// ConfigDir returns the folder with unwire's CA: the value of UNWIRE_CONFIG, or unwire/ in the user's
// configuration folder.
func ConfigDir() (string, error) {
	if dir := os.Getenv("UNWIRE_CONFIG"); dir != "" {
		return dir, nil
	}
	base, err := os.UserConfigDir()
	if err != nil {
		return "", Fail(ExitInput, fmt.Errorf("cannot find a folder for the CA: %w", err), "set UNWIRE_CONFIG to a folder")
	}
	return filepath.Join(base, "unwire"), nil
}

// ByteSize formats a number of bytes with its unit, of which one is 1000 of the one before: "512 B", "12.3 kB", "45.6 MB"
// or "1.2 GB".
func ByteSize(n int64) string {
	switch {
	case n < 10_000:
		return strconv.FormatInt(n, 10) + " B"
	case n < 100_000:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	case n < 1_000_000:
		return fmt.Sprintf("%d kB", n/1e3)
	case n < 1_000_000_000:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1f GB", float64(n)/1e9)
}

// progressEvery is the interval between two progress messages of a long import.
const progressEvery = 2 * time.Second

// Millis returns a duration in milliseconds, to the microsecond.
func Millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// NamesFolder reports whether the value of an output flag names a folder: it ends in a slash, or is an
// existing folder.
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

// ShowProgress shows a progress line on the terminal while a command reads the bodies of captures. Reads
// with the returned context are counted. what describes the work with a verb, such as "checking"; names
// are paths of captures or addresses of exchanges.
func (a *App) ShowProgress(ctx context.Context, what string, names ...string) (context.Context, *progress.Meter) {
	return progress.Start(ctx, progress.Options{
		Out: a.Out, Err: a.Err, What: what, Files: len(names),
		Total: func(ctx context.Context) int64 { return a.bodyBytes(ctx, names) },
	})
}

// bodyBytes returns the total size in bytes of the bodies in the named captures; 0 if it is not known.
func (a *App) bodyBytes(ctx context.Context, names []string) (total int64) {
	for _, name := range names {
		addr := query.ParseAddress(name)
		if addr.Exchange != 0 {
			return 0
		}
		c, err := a.OpenCapture(addr.File)
		if err != nil {
			return 0 // the work reports it
		}
		n, err := c.BodyBytes(ctx)
		c.Close()
		if err != nil {
			return 0
		}
		total += n
	}
	return total
}

// ShowSteps shows a progress line on the terminal for work that consists of steps. what describes the
// work, such as "probing"; unit is the name of one step, such as "request"; steps is the number of steps,
// 0 if it is not known.
func (a *App) ShowSteps(ctx context.Context, what, unit string, steps int) *progress.Meter {
	_, m := progress.Start(ctx, progress.Options{Out: a.Out, Err: a.Err, What: what, Unit: unit, Steps: steps})
	return m
}

// ShowFileProgress shows a progress line on the terminal while a file of size bytes is read; size is 0 if
// it is not known. Only bytes that are read through the returned meter's Reader count.
func (a *App) ShowFileProgress(ctx context.Context, what string, size int64) *progress.Meter {
	_, m := progress.Start(ctx, progress.Options{Out: a.Out, Err: a.Err, What: what, Total: func(context.Context) int64 { return size }})
	return m
}

// foreignEndings are the endings of file names that belong to other formats, each with the format of 'unwire export'
// that writes such files; "" if there is none.
var foreignEndings = map[string]string{
	".har": "har", ".json": "jsonl", ".jsonl": "jsonl", ".parquet": "parquet", ".pcap": "pcapng", ".pcapng": "pcapng",
	".flow": "", ".flows": "", ".mitm": "", ".proto": "", ".html": "", ".txt": "",
}

// CheckCaptureName returns a usage error if name, the value of -o, is the name of a new capture but ends like a file
// of another format: other programs could not read it.
func CheckCaptureName(name string) error {
	ext := strings.ToLower(filepath.Ext(name))
	format, foreign := foreignEndings[ext]
	if !foreign {
		return nil
	}
	if _, err := os.Stat(name); err == nil {
		return nil
	}
	capture := strings.TrimSuffix(name, filepath.Ext(name)) + ".uwc"
	hint := "use -o " + safetext.ShellFile(capture)
	if format != "" {
		hint += fmt.Sprintf(", and then 'unwire export %s --format %s -o %s'", safetext.ShellFile(capture), format, safetext.ShellFile(name))
	}
	return Fail(ExitUsage, fmt.Errorf("-o %s: this command writes a capture, whose name should end in .uwc, and not a %s file", name, ext), hint)
}
