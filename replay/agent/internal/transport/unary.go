package transport

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"unwire/captures"
	"unwire/replay/outbound"
)

const (
	// maxAnswer limits the response to a unary call in bytes.
	maxAnswer = 8 << 20

	// unaryTimeout limits the duration of a unary call.
	unaryTimeout = 30 * time.Second
)

// Unary calls a unary method with an encoded message and returns the encoded response message.
// procedure is the method's path, package.Service/Method.
//
// Limits: 30 seconds, 8 MB.
// Errors: outbound.ErrRefused; a *StatusError; that of ctx; errors of the connection.
func (d *Dialer) Unary(ctx context.Context, procedure string, header http.Header, message []byte) ([]byte, error) {
	if err := outbound.CheckTarget(d.URL, d.Policy.Live, d.Policy.AllowHosts); err != nil {
		return nil, err
	}
	d.prepare()
	ctx, cancel := context.WithTimeout(ctx, unaryTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.endpoint(procedure).String(), bytes.NewReader(message))
	if err != nil {
		return nil, err
	}
	req.Header = header.Clone()
	req.Header.Set("Content-Type", "application/proto")

	// The exchange is recorded whether it succeeds or not.
	record, err := d.begin(req, "1.1")
	if err != nil {
		return nil, err
	}
	if record != nil {
		record.Chunk(captures.Up, message)
	}
	answer, err := d.ask(ctx, req, record)
	if err != nil {
		endRecord(record, captures.Failed, err)
		return nil, err
	}
	endRecord(record, captures.Complete, nil)
	return answer, nil
}

// ask sends a unary request, and returns the response body. record may be nil.
func (d *Dialer) ask(ctx context.Context, req *http.Request, record captures.Recording) ([]byte, error) {
	var progress outbound.Progress
	var server string
	resp, err := d.http1.RoundTrip(req.WithContext(progress.Trace(ctx, &server)))
	if err != nil {
		return nil, openError(ctx, &progress, err)
	}
	recordResponse(record, resp, server)
	if resp.StatusCode != http.StatusOK {
		return nil, statusError(resp, record)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if record != nil {
		record.Chunk(captures.Down, answer)
	}
	if err == nil && len(answer) > maxAnswer {
		err = fmt.Errorf("the answer is larger than %d MB", maxAnswer>>20)
	}
	return answer, err
}
