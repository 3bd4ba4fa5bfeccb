package store

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"time"
	"unicode/utf8"

	"unwire/captures"
)

// insertExchange inserts the columns that writer.exchangeRow returns.
const (
	exchangeWidth  = 21
	insertExchange = `INSERT INTO exchanges (id, protocol, method, url, http, status, request_headers, request_trailers,
	response_headers, response_trailers, started_ns, duration_ns, client, server, process, tls,
	outcome, error, bytes_up, bytes_down, source) VALUES `
)

// updateExchange leaves what is fixed when an exchange begins.
const updateExchange = `UPDATE exchanges SET
	url=?4, http=?5, status=?6, request_trailers=?8, response_headers=?9, response_trailers=?10,
	duration_ns=?12, client=?13, server=?14, process=?15, tls=?16, outcome=?17, error=?18, bytes_up=?19, bytes_down=?20, source=?21
	WHERE id=?1`

// httpProtocol is how the file spells captures.HTTP.
const httpProtocol = "http"

// protocolOf is what the file has for a transport.
func protocolOf(t captures.Transport) string {
	if t == captures.HTTP {
		return httpProtocol
	}
	return string(t)
}

// transport reverses protocolOf.
func (c *rowValues) transport() captures.Transport {
	t := c.text()
	if t == httpProtocol {
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
}

func (c *rowValues) nextValue() any {
	v := c.values[c.next]
	c.next++
	return v
}

// bytesOf is how many bytes the row's texts and blobs have.
func (c *rowValues) bytesOf() (n int64) {
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

func (c *rowValues) headers() captures.Headers {
	h, err := parseHeaders(c.text())
	if err != nil && c.err == nil {
		c.err = captures.Damaged("column %d: %v", c.next, err)
	}
	return h
}

// exchange reads the values of Store.exchangeColumns.
func (c *rowValues) exchange() *captures.Exchange {
	e := &captures.Exchange{
		ID: c.int(), Transport: c.transport(), Method: c.text(), URL: c.text(), HTTP: c.text(), Status: int(c.small(math.MaxInt32)),
		RequestHeaders: c.headers(), RequestTrailers: c.headers(),
		ResponseHeaders: c.headers(), ResponseTrailers: c.headers(),
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

// appendHeaders writes h as a JSON array of [name, value] pairs. A field that
// is not UTF-8, which HTTP allows, becomes [name, value, "base64"] with both
// encoded.
func appendHeaders(h captures.Headers) string {
	if text, ok := plainHeaders(h); ok {
		return text
	}
	return jsonHeaders(h)
}

func jsonHeaders(h captures.Headers) string {
	rows := make([][]string, 0, len(h))
	for _, f := range h {
		if utf8.ValidString(f.Name) && utf8.ValidString(f.Value) {
			rows = append(rows, []string{f.Name, f.Value})
			continue
		}
		enc := base64.StdEncoding
		rows = append(rows, []string{enc.EncodeToString([]byte(f.Name)), enc.EncodeToString([]byte(f.Value)), "base64"})
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(rows) // strings in slices cannot fail
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}

// plainHeaders is appendHeaders where JSON escapes nothing, as mostly.
func plainHeaders(h captures.Headers) (string, bool) {
	if len(h) == 0 {
		return "[]", true
	}
	n := 2
	for _, f := range h {
		if !plainJSON(f.Name) || !plainJSON(f.Value) {
			return "", false
		}
		n += len(f.Name) + len(f.Value) + len(`["",""],`)
	}
	b := append(make([]byte, 0, n), '[')
	for i, f := range h {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '[')
		b = append(append(append(b, '"'), f.Name...), `","`...)
		b = append(append(b, f.Value...), `"]`...)
	}
	return string(append(b, ']')), true
}

// storedSize is how many bytes a field has in the file.
func storedSize(f captures.Header) int {
	if plainJSON(f.Name) && plainJSON(f.Value) {
		return len(f.Name) + len(f.Value) + len(`["",""],`)
	}
	return len(jsonHeaders(captures.Headers{f}))
}

// plainJSON reports whether s is ASCII that JSON has no escapes for.
func plainJSON(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// maxHeaderFields bounds the fields of one section: what is done with a field takes
// far longer than to read its few bytes.
const maxHeaderFields = 100_000

// parseHeaders reverses appendHeaders.
//
// Limits: 100,000 fields.
func parseHeaders(s string) (captures.Headers, error) {
	var rows [][]string
	if err := json.Unmarshal([]byte(s), &rows); err != nil {
		return nil, err
	}
	if len(rows) > maxHeaderFields {
		return nil, captures.Damaged("%d header fields, where at most %d are read", len(rows), maxHeaderFields)
	}
	var h captures.Headers
	for i, r := range rows {
		switch {
		case len(r) == 2:
			h = append(h, captures.Header{Name: r[0], Value: r[1]})
		case len(r) == 3 && r[2] == "base64":
			name, err := base64.StdEncoding.DecodeString(r[0])
			if err != nil {
				return h, captures.Damaged("header %d: %v", i, err)
			}
			value, err := base64.StdEncoding.DecodeString(r[1])
			if err != nil {
				return h, captures.Damaged("header %d: %v", i, err)
			}
			h = append(h, captures.Header{Name: string(name), Value: string(value)})
		default:
			return h, captures.Damaged("header %d has %d parts", i, len(r))
		}
	}
	return h, nil
}
