package query

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"

	"unwire/decode"
	"unwire/decode/conversation"
	"unwire/decode/envelope"
)

const (
	maxKept     = 64      // exchanges whose evidence a Capture keeps
	maxEvidence = 8 << 20 // bytes of evidence, decompressed
)

// evidenceOf returns the evidence for the types of an exchange's fields, collected from its messages and
// those of up to 200 neighbouring exchanges of the method; see decode.NewPool. It is computed once, and
// cached until the capture grows.
func (c *Capture) evidenceOf(ctx context.Context, at conversation.Resolved) *decode.Pool {
	last, err := c.LastNumber(ctx)
	if err != nil {
		return decode.NewPool(ctx, c.Store, at.Exchange)
	}
	name := fmt.Sprintf("evidence of %d", at.ID)
	if at.Joined != nil {
		name += " joined"
	}
	if c.Splitting != "" {
		name += " " + string(c.Splitting)
	}
	if pool := c.keptEvidence(ctx, name, last); pool != nil {
		return pool
	}
	pool := decode.NewPool(ctx, c.Store, at.Exchange)
	if ctx.Err() == nil {
		c.keepEvidence(ctx, name, last, pool)
	}
	return pool
}

// keptEvidence returns the cached evidence with a name, from memory or the capture file. It returns nil
// if there is none, or if it was computed when the capture had fewer exchanges; last is the capture's
// last number.
func (c *Capture) keptEvidence(ctx context.Context, name string, last int64) *decode.Pool {
	c.mu.Lock()
	value := c.evidence[name]
	c.mu.Unlock()
	if value == nil {
		// What cannot be read is derived again.
		value, _ = c.Derived(ctx, name)
	}
	if len(value) < 8 || binary.BigEndian.Uint64(value) != uint64(last) {
		return nil
	}
	data, err := envelope.Decompress("zstd", value[8:], maxEvidence)
	if err != nil {
		return nil
	}
	// Judging by evidence changes it, so everybody gets evidence of their own.
	pool := new(decode.Pool)
	if err := json.Unmarshal(data, pool); err != nil {
		return nil
	}
	c.remember(name, value)
	return pool
}

// keepEvidence caches evidence that was computed when the capture's last number was last, in memory and
// in the capture file. If the file cannot be written to, the evidence is computed again in the next run.
func (c *Capture) keepEvidence(ctx context.Context, name string, last int64, pool *decode.Pool) {
	data, err := json.Marshal(pool)
	if err != nil || len(data) > maxEvidence {
		return
	}
	packed, err := envelope.Compress("zstd", data)
	if err != nil {
		return
	}
	value := append(binary.BigEndian.AppendUint64(nil, uint64(last)), packed...)
	c.remember(name, value)
	_ = c.PutDerived(ctx, name, value)
}

// remember caches encoded evidence in memory.
func (c *Capture) remember(name string, value []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.evidence) >= maxKept {
		clear(c.evidence)
	}
	c.evidence[name] = value
}
