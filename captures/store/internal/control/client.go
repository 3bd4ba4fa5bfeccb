package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"unwire/captures"
)

// ErrNoWriter means that no recording process accepts additions to the capture: there is no control file, or
// nobody listens at its address.
var ErrNoWriter = errors.New("the process that records to this capture does not accept notes, marks or definitions")

// ErrBusy means that the recording process closed the connection, because it has too many connections or is
// ending. It is unknown whether the addition was stored.
var ErrBusy = errors.New("the recording process closed the connection")

// dialTimeout limits the time for connecting to the recorder's socket.
const dialTimeout = 2 * time.Second

// Add sends an addition to the process that records to the capture at path. It returns the number of the
// addition's row once it is committed.
//
// Errors: ErrNoWriter, ErrBusy, the error in the writer's answer, or the reason why the control file is not safe
// to use.
func Add(ctx context.Context, path string, a captures.Addition) (n int64, err error) {
	file, err := readFile(path + suffix)
	if err != nil {
		return 0, err
	}
	var d net.Dialer
	dialing, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := d.DialContext(dialing, file.Network, file.Address)
	if err != nil {
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		return 0, fmt.Errorf("%w: %w", ErrNoWriter, err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	_ = conn.SetDeadline(time.Now().Add(messageTimeout + requestTimeout))

	// The first message authenticates, the second is the request.
	if err = exchange(conn, hello{version, file.Token}, &answer{}); err == nil {
		id := int64(1)
		q := newRequest(a)
		q.ID = &id
		var got answer
		err = exchange(conn, q, &got)
		n = got.N
	}

	// The cancelled context made the read fail.
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return n, err
}

// exchange sends one message to the recorder, and decodes the response into got.
func exchange(conn net.Conn, message any, got *answer) error {
	b, err := appendMessage(nil, message)
	if err != nil {
		return err
	}
	_, werr := conn.Write(b)
	// The writer may refuse a message, and answer, before all of it was sent. So read the answer even if writing
	// failed.
	text, err := readMessage(conn, maxAnswer)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBusy, errors.Join(werr, err))
	}
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(got); err != nil {
		return fmt.Errorf("the answer of the recording process cannot be read: %w", err)
	}
	switch {
	case got.Error != nil:
		return &requestError{*got.Error}
	case !got.OK:
		return errors.New("the recording process sent an answer with neither success nor an error")
	}
	return nil
}

// readFile reads a control file, and checks that its address is on this machine.
//
// Errors: ErrNoWriter if it does not exist.
func readFile(name string) (*controlFile, error) {
	f, err := openPrivate(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return nil, err
	}
	var file controlFile
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("%s is not a control file: %w", name, err)
	}
	if file.V != version {
		return nil, fmt.Errorf("%s has version %d, which this version of unwire does not support: %w", name, file.V, captures.ErrNewerFormat)

		// The file names a socket that this process will connect to, so only local ones are accepted.
	}
	switch file.Network {
	case "unix":
	case "tcp":
		host, _, err := net.SplitHostPort(file.Address)
		if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
			return nil, fmt.Errorf("%s contains the address %.60q, which is not an address of this machine", name, file.Address)
		}
	default:
		return nil, fmt.Errorf("%s names the unknown network %.20q", name, file.Network)
	}
	return &file, nil
}
