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

// transport reads a transport's name from the row.
func (c *rowValues) transport() captures.Transport {
	t := c.text()
	if t == rows.HTTP {
		return captures.HTTP
	}
	return captures.Transport(t)
}

// process reads the columns of a client program: its id, and those of its row, which are NULL if there is none.
func (c *rowValues) process() (p captures.Process) {
	if c.nonNegative() == 0 {
		c.next += 4
		return p
	}
	return captures.Process{PID: int(c.intUpTo(math.MaxInt32)), Name: c.text(), Client: c.text(), Version: c.text()}
}

// rowValues reads the column values of one row in order, and keeps the first error; its methods then return
// zero values. The values come from an untrusted file, so each may have any type.
type rowValues struct {
	// values are the values of the row's columns, in order.
	values []any
	// next is the index in values of the next value to be read.
	next int
	// err is the first error, such as a value with an unexpected type; nil if there was none.
	err error

	// inflated is the total size of the row's header sections that are stored as payloads, decompressed.
	inflated int64
}

// nextValue returns the next value of the row without checking its type.
func (c *rowValues) nextValue() any {
	v := c.values[c.next]
	c.next++
	return v
}

// byteSize returns the size of the row's texts and blobs, decompressed, in bytes.
func (c *rowValues) byteSize() (n int64) {
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

// typeError records that a value has the wrong type.
func (c *rowValues) typeError(want string, v any) {
	if c.err == nil {
		c.err = captures.Damaged("column %d contains %T instead of %s", c.next, v, want)
	}
}

// int reads an integer from the row.
func (c *rowValues) int() int64 {
	v := c.nextValue()
	i, ok := v.(int64)
	if !ok {
		c.typeError("an integer", v)
	}
	return i
}

// nonNegative reads an integer of at least 0 from the row.
func (c *rowValues) nonNegative() int64 {
	i := c.int()
	if i < 0 && c.err == nil {
		c.err = captures.Damaged("column %d contains the invalid number %d", c.next, i)
	}
	return i
}

// intUpTo reads an integer from 0 to limit from the row.
func (c *rowValues) intUpTo(limit int64) int64 {
	i := c.nonNegative()
	if i > limit && c.err == nil {
		c.err = captures.Damaged("column %d contains the invalid number %d", c.next, i)
	}
	return i
}

// text reads a string from the row.
func (c *rowValues) text() string {
	v := c.nextValue()
	s, ok := v.(string)
	if !ok {
		c.typeError("text", v)
	}
	return s
}

// bytes reads a blob from the row. SQLite returns an empty blob as nil.
func (c *rowValues) bytes() []byte {
	v := c.nextValue()
	b, ok := v.([]byte)
	if !ok && v != nil {
		c.typeError("bytes", v)
	}
	return b
}

// headers reads the columns that the function section returns, and decodes the header section. Its text is
// either the section itself, as JSON, or the number of a payload that contains it.
func (c *rowValues) headers(u *payload.Unpacker) captures.Headers {
	text := c.text()
	if text == "" || text[0] == '[' || c.err != nil {
		c.next += 4
	} else {

		// Check the declared size before decompressing.
		if size, ok := c.values[c.next+1].(int64); ok && size > maxHeadValue {
			c.err = captures.Damaged("column %d: a header section claims to have %d bytes", c.next, size)
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

// exchange reads the columns columnsOf.exchange from the row and returns the exchange.
func (c *rowValues) exchange(u *payload.Unpacker) *captures.Exchange {
	e := &captures.Exchange{
		ID: c.int(), Transport: c.transport(), Method: c.text(), URL: c.text(), HTTP: c.text(), Status: int(c.intUpTo(math.MaxInt32)),
		RequestHeaders: c.headers(u), RequestTrailers: c.headers(u),
		ResponseHeaders: c.headers(u), ResponseTrailers: c.headers(u),
	}
	if ns := c.int(); ns != 0 {
		e.Started = time.Unix(0, ns).UTC()
	}
	e.Duration = time.Duration(c.nonNegative())
	e.Client, e.Server, e.Process = c.text(), c.text(), c.process()
	if err := json.Unmarshal([]byte(c.text()), &e.TLS); err != nil && c.err == nil {
		c.err = captures.Damaged("column %d: %v", c.next, err)
	}
	e.Outcome, e.Error = captures.Outcome(c.text()), c.text()
	e.BytesUp, e.BytesDown, e.Source = c.nonNegative(), c.nonNegative(), c.text()
	if c.err != nil {
		c.err = fmt.Errorf("exchange %d: %w", e.ID, c.err)
	}
	return e
}
