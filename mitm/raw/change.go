package raw

import (
	"bytes"
	"io"
	"net"

	"unwire/captures"
	"unwire/mitm/rewrite"
)

// A changer forwards the chunks of one direction, changed by rewriting rules if there are any for the
// connection.
type changer struct {
	// body applies the rules to the chunks of the direction; nil until the first chunk, or without rules.
	body *rewrite.Body
}

// write forwards the chunk p of direction dir to dst.
//
// Errors: *rewrite.Stop if a rule resets the connection; those of dst.
func (c *changer) write(r *relay, dir captures.Direction, dst net.Conn, p []byte) error {
	r.mu.Lock()
	change, rec := r.change, r.rec
	r.mu.Unlock()
	if change == nil {
		_, err := dst.Write(p)
		return err
	}
	if c.body == nil {
		c.body = &rewrite.Body{Dir: dir, Exchange: change, Declared: -1}
		c.body.Recorder, _ = rec.(rewrite.Recorder)
	}
	return c.body.Run(r.ctx, bytes.NewReader(p), sink{dst})
}

// A sink forwards changed bytes to a connection.
type sink struct {
	// Writer is the connection to which the bytes are written.
	io.Writer
}

// Begin does nothing, because the bytes have no head.
func (sink) Begin(int64) error { return nil }
