package store

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"unwire/captures"
	"unwire/captures/store/internal/fields"
	"unwire/captures/store/internal/payload"
	"unwire/captures/store/internal/rows"
)

// transport reads a protocol.
func (c *rowValues) transport() captures.Transport {
	t := c.text()
	if t == rows.HTTP {
		return captures.HTTP
	}
	return captures.Transport(t)
}

// process reads a process's number and the columns of its row, which are NULL if there is
// none.
func (c *rowValues) process() (p captures.Process) {
	if c.size() == 0 {
		c.next += 4
		return p
	}
	return captures.Process{PID: int(c.small(math.MaxInt32)), Name: c.text(), Client: c.text(), Version: c.text()}
}

// A rowValues reads one row's values in order and keeps the first error. The
// values come from a file that is not trusted: any may have any type.
type rowValues struct {
	values []any
	next   int
	err    error

	// inflated is how many bytes its sections of headers have that are stored as payloads.
	inflated int64
}

func (c *rowValues) nextValue() any {
	v := c.values[c.next]
	c.next++
	return v
}

// bytesOf is how many bytes the row's texts and blobs have, with what was inflated of them.
func (c *rowValues) bytesOf() (n int64) {
	n = c.inflated
	for _, v := range c.values {
		switch v := v.(type) {
		case string:
			n += int64(len(v))
		case []byte:
			n += int64(len(v))
		}
	}
	return n
}

func (c *rowValues) fail(want string, v any) {
	if c.err == nil {
		c.err = captures.Damaged("column %d holds %T where %s belongs", c.next, v, want)
	}
}

func (c *rowValues) int() int64 {
	v := c.nextValue()
	i, ok := v.(int64)
	if !ok {
		c.fail("an integer", v)
	}
	return i
}

// size reads an integer that cannot be negative.
func (c *rowValues) size() int64 {
	i := c.int()
	if i < 0 && c.err == nil {
		c.err = captures.Damaged("column %d holds %d", c.next, i)
	}
	return i
}

// small reads an integer from 0 to limit.
func (c *rowValues) small(limit int64) int64 {
	i := c.size()
	if i > limit && c.err == nil {
		c.err = captures.Damaged("column %d holds %d", c.next, i)
	}
	return i
}

func (c *rowValues) text() string {
	v := c.nextValue()
	s, ok := v.(string)
	if !ok {
		c.fail("text", v)
	}
	return s
}

// bytes reads a blob; SQLite hands out an empty one as nil.
func (c *rowValues) bytes() []byte {
	v := c.nextValue()
	b, ok := v.([]byte)
	if !ok && v != nil {
		c.fail("bytes", v)
	}
	return b
}

// headers reads the columns of section.
func (c *rowValues) headers(u *payload.Unpacker) captures.Headers {
	text := c.text()
	if text == "" || text[0] == '[' || c.err != nil {
		c.next += 4
	} else {
		if size, ok := c.values[c.next+1].(int64); ok && size > maxHeadValue {
			c.err = captures.Damaged("column %d: a section of headers declares %d bytes", c.next, size)
			return nil
		}
		data := c.payload(u)
		c.inflated += int64(len(data))
		text = string(data)
	}
	if c.err != nil {
		return nil
	}
	h, err := fields.Parse(text)
	if err != nil && c.err == nil {
		c.err = captures.Damaged("column %d: %v", c.next, err)
	}
	return h
}

// exchange reads the values of Store.exchangeColumns.
func (c *rowValues) exchange(u *payload.Unpacker) *captures.Exchange {
	e := &captures.Exchange{
		ID: c.int(), Transport: c.transport(), Method: c.text(), URL: c.text(), HTTP: c.text(), Status: int(c.small(math.MaxInt32)),
		RequestHeaders: c.headers(u), RequestTrailers: c.headers(u),
		ResponseHeaders: c.headers(u), ResponseTrailers: c.headers(u),
	}
	if ns := c.int(); ns != 0 {
		e.Started = time.Unix(0, ns).UTC()
	}
	e.Duration = time.Duration(c.size())
	e.Client, e.Server, e.Process = c.text(), c.text(), c.process()
	if err := json.Unmarshal([]byte(c.text()), &e.TLS); err != nil && c.err == nil {
		c.err = captures.Damaged("column %d: %v", c.next, err)
	}
	e.Outcome, e.Error = captures.Outcome(c.text()), c.text()
	e.BytesUp, e.BytesDown, e.Source = c.size(), c.size(), c.text()
	if c.err != nil {
		c.err = fmt.Errorf("exchange %d: %w", e.ID, c.err)
	}
	return e
}
