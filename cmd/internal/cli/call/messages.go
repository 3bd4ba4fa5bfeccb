package callcmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"unwire/cmd/internal/app"
)

// maxMessage is how many bytes of JSON a message may have.
const maxMessage = 64 << 20

// A messageReader reads a sequence of JSON values from the command line, a file or standard input.
type messageReader struct {
	name    string
	limited *io.LimitedReader
	values  *json.Decoder
	number  int
	close   func() error
}

// newMessageReader returns a reader of the messages in --data: JSON, @FILE, or - for standard input.
// Without --data a unary call gets no message, and a client-streaming call reads standard input.
func newMessageReader(a *app.App, data string, given, streams bool) (*messageReader, error) {
	r := &messageReader{name: "--data", close: func() error { return nil }}
	var from io.Reader = strings.NewReader(data)
	switch file, isFile := strings.CutPrefix(data, "@"); {
	case data == "-", data == "@-", !given && streams:
		from, r.name = a.Input, "stdin"
	case isFile:
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		from, r.name, r.close = a.Interruptible(f), file, f.Close
	}
	r.limited = &io.LimitedReader{R: from, N: maxMessage}
	r.values = json.NewDecoder(r.limited)
	return r, nil
}

// next returns the next value, and io.EOF after the last.
func (r *messageReader) next() ([]byte, error) {
	r.number++
	r.limited.N = maxMessage
	var value json.RawMessage
	err := r.values.Decode(&value)
	switch {
	case err == nil:
		return value, nil
	case r.limited.N <= 0:
		return nil, app.Fail(app.ExitInput, fmt.Errorf("%s: message %d has more than %d bytes", r.name, r.number, maxMessage), "")
	case errors.Is(err, io.EOF):
		return nil, io.EOF
	case errors.As(err, new(*json.SyntaxError)), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, app.Fail(app.ExitInput, fmt.Errorf("%s: message %d is not valid JSON: %w", r.name, r.number, err), "messages are JSON objects, one after the other")
	}
	return nil, fmt.Errorf("read %s: %w", r.name, err)
}
