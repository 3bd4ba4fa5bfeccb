package intercept

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ErrNoRecorder means that no process is recording to the capture with rules or --intercept at the moment.
var ErrNoRecorder = errors.New("no 'unwire capture' with --intercept or rules is recording to this file")

const (
	// maxFile limits the file with the server's address, and maxHeld a response of the server; both in bytes.
	maxFile = 4 << 10
	maxHeld = 512 << 20
)

// A Client connects to a recorder that holds frames, i.e. delays forwarding them until somebody decides about
// them.
type Client struct {
	// http connects to the recorder's socket.
	http *http.Client

	// token is the secret that the server requires.
	token string
}

// Dial returns a client of the process that records to a capture.
//
// Errors: ErrNoRecorder.
func Dial(capture string) (*Client, error) {
	name := capture + fileSuffix
	f, err := openPrivate(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s", ErrNoRecorder, capture)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var at address
	if err := json.NewDecoder(io.LimitReader(f, maxFile)).Decode(&at); err != nil || at.Network != "unix" && !strings.HasPrefix(at.Address, "127.0.0.1:") {
		return nil, fmt.Errorf("the file %s is damaged: delete it", name)
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, at.Network, at.Address)
	}
	return &Client{http: &http.Client{Transport: &http.Transport{DialContext: dial}}, token: at.Token}, nil
}

// do sends a request, and decodes the JSON response into v unless that is nil.
func (c *Client) do(ctx context.Context, method, path string, body, v any) error {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return err
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://recorder"+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+c.token)
	res, err := c.http.Do(r)
	if err != nil {
		return asEnded(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxHeld))
	switch {
	case err != nil:
		return asEnded(err)
	case res.StatusCode == http.StatusNotFound:
		return fmt.Errorf("%w any more", ErrNotHeld)
	case res.StatusCode/100 != 2:
		return errors.New(strings.TrimSpace(string(answer)))
	case v == nil:
		return nil
	}
	return json.Unmarshal(answer, v)
}

// asEnded returns the error of a connection as ErrNoRecorder if the recorder does not listen any more, or has ended before
// its response was complete.
func asEnded(err error) error {
	var failed *net.OpError
	ended := errors.As(err, &failed) && failed.Op == "dial" || errors.Is(err, os.ErrNotExist)
	for _, cut := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE} {
		ended = ended || errors.Is(err, cut)
	}
	if !ended {
		return err
	}
	return fmt.Errorf("%w: the recording has ended", ErrNoRecorder)
}

// Held returns the held frames with an ID above after. If there are none, it waits for one, at most for wait.
//
// Errors: ErrNoRecorder, as of the other methods, if the recorder has ended.
func (c *Client) Held(ctx context.Context, after int64, wait time.Duration) (frames []Frame, err error) {
	path := fmt.Sprintf("/held?after=%d&wait=%s", after, wait)
	return frames, c.do(ctx, http.MethodGet, path, nil, &frames)
}

// Decide decides what happens to the held frame with an ID.
//
// Errors: ErrNotHeld.
func (c *Client) Decide(ctx context.Context, id int64, d Decision) error {
	return c.do(ctx, http.MethodPost, "/held/"+strconv.FormatInt(id, 10), d, nil)
}

// ReleaseAll releases all held frames unchanged, and returns their number.
func (c *Client) ReleaseAll(ctx context.Context) (int, error) {
	var answer struct {
		Released int `json:"released"`
	}
	err := c.do(ctx, http.MethodPost, "/release-all", nil, &answer)
	return answer.Released, err
}
