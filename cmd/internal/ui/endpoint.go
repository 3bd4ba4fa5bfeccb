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
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/query"
)

// maxBody bounds what the page sends, in bytes.
const maxBody = 8 << 20

// An endpoint is a path of the API with the function that answers requests for it.
type endpoint struct {
	// path is the path after apiPath, such as schema/type.
	path string

	// post means that requests must use POST, because they change something or have a body. Other requests
	// use GET.
	post bool

	// answer returns the answer, which is sent as JSON, or as a file if it is a *download.
	answer func(context.Context, *request) (any, error)
}

// A request is an API request from the page.
type request struct {
	// library has the captures that the server shows.
	*library

	// query are the parameters of the URL.
	query url.Values

	// body is the body of a POST request.
	body []byte
}

// A failure is an error with the HTTP status to send.
type failure struct {
	// status is the HTTP status.
	status int

	// text is the message that the page shows.
	text string
}

// Error returns the text.
func (f *failure) Error() string { return f.text }

// badRequest returns a formatted error with the HTTP status 400.
func badRequest(format string, args ...any) error {
	return &failure{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

// notFound returns a formatted error with the HTTP status 404.
func notFound(format string, args ...any) error {
	return &failure{http.StatusNotFound, fmt.Sprintf(format, args...)}
}

// A download is an answer that is sent as a file.
type download struct {
	// name is the file name that the browser proposes.
	name string

	// data is the content of the file.
	data []byte
}

// send writes an answer to w, as a file if it is a *download and as JSON otherwise.
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

// sendError writes an error to w as a JSON object with the member error, which the page shows.
func sendError(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	switch f, ok := errors.AsType[*failure](err); {
	case ok:
		status = f.status
	case errors.Is(err, captures.ErrNoExchange):
		status = http.StatusNotFound
	}
	data, _ := json.Marshal(map[string]string{"error": app.PlainText(err)})
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(data)
}

// file returns the capture whose number is the parameter c; without the parameter, the first capture.
func (q *request) file() (*file, error) {
	i, err := q.number("c", 0)
	if err != nil {
		return nil, err
	}
	return q.fileAt(int(i))
}

// capture returns the open capture that the request names.
func (q *request) capture() (*query.Capture, error) {
	f, err := q.file()
	if err != nil {
		return nil, err
	}
	return f.open()
}

// number returns the parameter name as a whole number of at least 0; missing if the parameter is absent.
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

// window returns the range of rows [from,to) that the parameters from and to ask for, limited to most
// rows. Without the parameter to, it is most rows.
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

// parse decodes the body from JSON into to. It refuses unknown members.
func (q *request) parse(to any) error {
	d := json.NewDecoder(bytes.NewReader(q.body))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		return badRequest("the request is malformed: %v", err)
	}
	return nil
}

// line returns an object as one JSON line, as the command line prints it, without the line end.
func line(o contract.Object) (json.RawMessage, error) {
	var b bytes.Buffer
	if err := contract.NewEncoder(&b).Encode(o); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// lines returns each object of a list as JSON, as the command line prints it.
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
