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

// ErrNobody is returned if no writer can be asked: there is no control file, or nobody
// listens at its address.
var ErrNobody = errors.New("its writer accepts no additions")

// ErrBusy is returned if the writer hung up: it has as many connections as it allows, or it
// ended. Whether the addition was stored is not known.
var ErrBusy = errors.New("its writer hung up")

const dialTime = 2 * time.Second

// Add has the writer of the capture at path store an addition, and returns the number of
// its row once it is committed.
//
// Errors: ErrNobody, ErrBusy, what the writer answered, or why the control file must not be used.
func Add(ctx context.Context, path string, a captures.Addition) (n int64, err error) {
	file, err := readFile(path + suffix)
	if err != nil {
		return 0, err
	}
	var d net.Dialer
	dialing, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	conn, err := d.DialContext(dialing, file.Network, file.Address)
	if err != nil {
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		return 0, fmt.Errorf("%w: %w", ErrNobody, err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	_ = conn.SetDeadline(time.Now().Add(messageTime + requestTime))

	if err = exchange(conn, hello{version, file.Token}, &answer{}); err == nil {
		id := int64(1)
		q := requestOf(a)
		q.ID = &id
		var got answer
		err = exchange(conn, q, &got)
		n = got.N
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return n, err
}

// exchange sends a message, and reads the answer to it.
func exchange(conn net.Conn, message any, got *answer) error {
	b, err := appendMessage(nil, message)
	if err != nil {
		return err
	}
	_, werr := conn.Write(b)
	// What the writer says of a message that it refuses comes before it was all sent.
	text, err := readMessage(conn, maxAnswer)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBusy, errors.Join(werr, err))
	}
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(got); err != nil {
		return fmt.Errorf("the writer's answer is unreadable: %w", err)
	}
	switch {
	case got.Error != nil:
		return &refusal{*got.Error}
	case !got.OK:
		return errors.New("the writer's answer says neither that it did what it was asked for nor why not")
	}
	return nil
}

// readFile reads a control file.
//
// Errors: ErrNobody if it is not there.
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
		return nil, fmt.Errorf("%s is no control file: %w", name, err)
	}
	if file.V != version {
		return nil, fmt.Errorf("%s has version %d, which this unwire does not speak: %w", name, file.V, captures.ErrNewerFormat)
	}
	switch file.Network {
	case "unix":
	case "tcp":
		host, _, err := net.SplitHostPort(file.Address)
		if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
			return nil, fmt.Errorf("%s names %.60q, which is not on this machine", name, file.Address)
		}
	default:
		return nil, fmt.Errorf("%s names the unknown network %.20q", name, file.Network)
	}
	return &file, nil
}
