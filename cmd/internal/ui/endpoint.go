package ui

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strconv"

	"unwire/captures"
	"unwire/cmd/internal/contract"
)

// maxBody bounds what the page sends, in bytes.
const maxBody = 8 << 20

// An endpoint answers requests of the page below apiPath.
type endpoint struct {
	// path is behind apiPath.
	path string

	// post is whether the request changes something. Others are GET.
	post bool

	// answer returns what is sent as JSON; a download is sent as a file.
	answer func(context.Context, *request) (any, error)
}

// A request is one of the page.
type request struct {
	*library
	query url.Values
	body  []byte
}

// A failure is an error that the page shows.
type failure struct {
	status int
	text   string
}

func (f *failure) Error() string { return f.text }

func badRequest(format string, args ...any) error {
	return &failure{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

func notFound(format string, args ...any) error {
	return &failure{http.StatusNotFound, fmt.Sprintf(format, args...)}
}

// A download is sent as a file.
type download struct {
	name string
	data []byte
}

// send sends an answer.
func send(w http.ResponseWriter, value any) {
	if d, ok := value.(*download); ok {
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": d.name}))
		_, _ = w.Write(d.data)
		return
	}
	data, err := json.Marshal(value)
	if err != nil {
		sendError(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(data)
}

// sendError sends an error as the page shows it.
func sendError(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	switch f, ok := errors.AsType[*failure](err); {
	case ok:
		status = f.status
	case errors.Is(err, captures.ErrNoExchange):
		status = http.StatusNotFound
	}
	data, _ := json.Marshal(map[string]string{"error": err.Error()})
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(data)
}

// file returns the capture that the parameter c names by its number.
func (q *request) file() (*file, error) {
	i, err := q.number("c", 0)
	if err != nil {
		return nil, err
	}
	return q.fileAt(int(i))
}

// number returns a parameter that is a whole number of at least 0, or missing for its default.
func (q *request) number(name string, missing int64) (int64, error) {
	text := q.query.Get(name)
	if text == "" {
		return missing, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, badRequest("%s must be a number, not %q", name, text)
	}
	return n, nil
}

// window returns the parameters from and to, with to at most so many after from.
func (q *request) window(most int64) (from, to int, err error) {
	first, err := q.number("from", 0)
	if err != nil {
		return 0, 0, err
	}
	last, err := q.number("to", first+most)
	if err != nil {
		return 0, 0, err
	}
	const largest = 1 << 40
	first = min(first, largest)
	return int(first), int(max(first, min(last, first+most))), nil
}

// parse reads the body as JSON.
func (q *request) parse(to any) error {
	d := json.NewDecoder(bytes.NewReader(q.body))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		return badRequest("the request is malformed: %v", err)
	}
	return nil
}

// line returns an object of the contract as the command line prints it.
func line(o contract.Object) (json.RawMessage, error) {
	var b bytes.Buffer
	if err := contract.NewEncoder(&b).Encode(o); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// lines returns objects of the contract as the command line prints them.
func lines[T contract.Object](list []T) ([]json.RawMessage, error) {
	out := make([]json.RawMessage, len(list))
	for i, o := range list {
		var err error
		if out[i], err = line(o); err != nil {
			return nil, err
		}
	}
	return out, nil
}
