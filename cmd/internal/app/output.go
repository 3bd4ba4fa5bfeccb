package app

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/query"
	"unwire/decode/text"
	"unwire/proto"
	"unwire/replay/credential"
)

// Print writes an object of the contract as one line of JSON Lines on stdout.
func (a *App) Print(o contract.Object) error {
	return contract.NewEncoder(a.Out).Encode(o)
}

// Say writes talk for people to stderr.
func (a *App) Say(format string, args ...any) {
	fmt.Fprintf(a.Err, format+"\n", args...)
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

// MaxInput bounds what is read whole from a file or stdin.
const MaxInput = 1 << 30

// ReadInput reads a file, or stdin for "-".
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

func InputName(name string) string {
	if name == "-" {
		return "stdin"
	}
	return name
}

// OpenCapture opens a capture for reading.
func OpenCapture(path string) (*query.Capture, error) {
	if path == "-" {
		return nil, Fail(ExitUsage, errors.New("a capture cannot be read from stdin: it is a database, not a stream"),
			"save it first, 'cat > F.uwc'; 'unwire import -' reads HAR, JSON Lines, flows and packets from stdin")
	}
	limits, err := readLimits()
	if err != nil {
		return nil, err
	}
	return query.Open(path, store.ReadOptions{Limits: limits, Profile: proto.Profile()})
}

// maxReadVariable is the environment variable that sets to how many bytes the
// bodies of a capture may expand.
const maxReadVariable = "UNWIRE_MAX_READ"

// readLimits returns the limits for reading a capture.
func readLimits() (l store.Limits, err error) {
	text := os.Getenv(maxReadVariable)
	if text == "" {
		return l, nil
	}
	if l.Bytes, err = ParseSize(text); err != nil {
		return l, Usagef("%s: %w", maxReadVariable, err)
	}
	return l, nil
}

// hintFor says what to do about the errors that people meet most.
func hintFor(err error) string {
	var syntax *text.Error
	if errors.As(err, &syntax) {
		return syntax.Hint
	}
	_, limited := errors.AsType[*store.LimitError](err)
	switch {
	case limited:
		return "what was read before that counts, the rest does not; if you trust the file, set " + maxReadVariable + " to what it may expand to, such as 20GB"
	case errors.Is(err, captures.ErrNoExchange):
		return "'unwire ls F.uwc' lists the exchanges"
	case errors.Is(err, captures.ErrNoFolder):
		return "make the folder first, or name another"
	case errors.Is(err, captures.ErrNewerFormat):
		return "use a newer unwire, or record again with this one"
	case errors.Is(err, captures.ErrNotCapture):
		return "a capture is made by 'unwire capture -o F.uwc'"
	case errors.Is(err, captures.ErrDamaged):
		return "what could be read was shown; the rest of the file is lost"
	case errors.Is(err, captures.ErrInUse):
		return "end the other recorder, or record to another file"
	case errors.Is(err, captures.ErrOlderFormat):
		return "'unwire capture -o' the file once: it is brought up to date"
	case errors.Is(err, credential.ErrExpired):
		return "get a new one; with an API key, 'unwire replay --refresh' exchanges it for one"
	case errors.Is(err, credential.ErrCredentials):
		return "the capture holds placeholders: give the secret in the environment or with --credentials"
	case errors.Is(err, fs.ErrNotExist):
		if pe, ok := errors.AsType[*fs.PathError](err); ok && filepath.Ext(pe.Path) != ".uwc" {
			return "check the name"
		}
		return "check the name; 'unwire capture -o F.uwc' makes a capture"
	case errors.Is(err, fs.ErrPermission):
		return "check the file's permissions"
	}
	return ""
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
