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

// maxMessage is the largest size of one request message, in bytes of JSON.
const maxMessage = 64 << 20

// A messageReader reads the request messages of a call, a sequence of JSON values, from the command line,
// a file or standard input.
type messageReader struct {
	// name is the name of the source in error messages, such as "stdin".
	name string

	// limited limits the size of the message that is being read.
	limited *io.LimitedReader

	// values splits the input into JSON values.
	values *json.Decoder

	// number is the number of the current message, from 1.
	number int

	// close closes the input file.
	close func() error
}

// newMessageReader returns a reader of the messages in data, the value of --data: JSON, @FILE, or - for
// standard input. given reports whether the flag was set. Without it, a client-streaming call (streams)
// reads standard input, and a unary call gets no message.
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

// next returns the next message as JSON, and io.EOF after the last one.
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
