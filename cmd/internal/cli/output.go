package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/decode/text"
	"unwire/proto"
	"unwire/replay/credential"
)

// printJSON writes v as one line of JSON Lines on stdout.
func (a *app) printJSON(v any) error {
	return newLineEncoder(a.out).Encode(v)
}

// newLineEncoder writes JSON Lines.
func newLineEncoder(w io.Writer) *json.Encoder {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e
}

// say writes talk for people to stderr.
func (a *app) say(format string, args ...any) {
	fmt.Fprintf(a.err, format+"\n", args...)
}

// counted is a number with what it counts: "1 frame", "2 frames".
func counted[N int | int64](n N, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// writeBinary writes bytes to stdout, but not onto a terminal unless that was
// asked for with -o -.
func (a *app) writeBinary(data []byte, out string) error {
	switch {
	case out != "" && out != "-":
		err := wholeFile(out, forOwner, func(w io.Writer) error { _, err := w.Write(data); return err })
		if err != nil {
			return fmt.Errorf("write result: %w", err)
		}
		return nil
	case out == "" && a.out.TTY:
		return fail(exitUsage, errors.New("the result is binary and stdout is a terminal"), "name a file with -o FILE, or say -o -")
	}
	_, err := a.out.Write(data)
	return err
}

// maxInput bounds what is read whole from a file or stdin.
const maxInput = 1 << 30

// readInput reads a file, or stdin for "-".
func (a *app) readInput(name string) ([]byte, error) {
	r := a.input
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		r = a.interruptible(f)
	}
	data, err := io.ReadAll(io.LimitReader(r, maxInput+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", inputName(name), err)
	}
	if len(data) > maxInput {
		return nil, fmt.Errorf("%s is larger than %d bytes", inputName(name), maxInput)
	}
	return data, nil
}

func inputName(name string) string {
	if name == "-" {
		return "stdin"
	}
	return name
}

// openCapture opens a capture for reading.
func openCapture(path string) (*store.Store, error) {
	if path == "-" {
		return nil, fail(exitUsage, errors.New("a capture cannot be read from stdin: it is a database, not a stream"),
			"save it first, 'cat > F.uwc'; 'unwire import -' reads HAR, JSON Lines, flows and packets from stdin")
	}
	limits, err := readLimits()
	if err != nil {
		return nil, err
	}
	return store.Open(path, store.ReadOptions{Limits: limits, Profile: proto.Profile()})
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
	if l.Bytes, err = parseSize(text); err != nil {
		return l, usagef("%s: %w", maxReadVariable, err)
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

// configDir is where unwire keeps its CA: UNWIRE_CONFIG, or unwire/ in the
// user's configuration folder.
func configDir() (string, error) {
	if dir := os.Getenv("UNWIRE_CONFIG"); dir != "" {
		return dir, nil
	}
	base, err := os.UserConfigDir()
	if err != nil {
		return "", fail(exitInput, fmt.Errorf("no folder for the CA: %w", err), "set UNWIRE_CONFIG to a folder")
	}
	return filepath.Join(base, "unwire"), nil
}
