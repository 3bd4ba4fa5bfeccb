// Package parquet writes the frames of a capture and their fields as two tables,
// frames.parquet and fields.parquet, for DuckDB, ClickHouse, Spark and the like.
//
// A frame is found by (exchange, dir, seq), and so are its fields, by node in
// the order of the bytes. The tables' columns are the members of frameRow
// and fieldRow; times are UTC, in nanoseconds. Columns are compressed by zstd.
//
// The rows are made of decoded frames; nothing is read in this format. Package
// formats alone calls this one.
//
// Source: captures/README.md#parquet
package parquet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	pq "github.com/parquet-go/parquet-go"
	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/captures/transfer"
	"unwire/decode"
)

// A frameRow is a row of frames.parquet: one message of an exchange.
type frameRow struct {
	Exchange int64 `parquet:"exchange,delta"`

	// Dir is "up" or "down".
	Dir string `parquet:"dir,dict"`

	// Seq counts from 0 in each direction.
	Seq  int32     `parquet:"seq"`
	Time time.Time `parquet:"time,timestamp(nanosecond)"`

	// TNS is the time since the exchange's start in nanoseconds.
	TNS        int64  `parquet:"t_ns"`
	Flags      int32  `parquet:"flags"`
	Compressed bool   `parquet:"compressed"`
	Encoding   string `parquet:"encoding,dict"`

	// End is set for the end of the call: end of stream, trailer, error.
	End   bool   `parquet:"end"`
	Event string `parquet:"event,dict"`

	// Partial is set if the body ended inside the frame.
	Partial bool `parquet:"partial"`

	// Off is the offset in the direction's bytes, Len the length of the payload as
	// sent.
	Off int64 `parquet:"off"`
	Len int64 `parquet:"len"`

	// Data is the payload after decompression.
	Data  []byte `parquet:"data"`
	Type  string `parquet:"type,dict"`
	Error string `parquet:"error,dict"`

	// The rest repeats what is known of the exchange.
	Method   string `parquet:"method,dict"`
	URL      string `parquet:"url,dict"`
	HTTP     string `parquet:"http,dict"`
	Status   int32  `parquet:"status"`
	Protocol string `parquet:"protocol,dict"`
	Service  string `parquet:"service,dict"`
	RPC      string `parquet:"rpc,dict"`
	Codec    string `parquet:"codec,dict"`
	Code     string `parquet:"code,dict"`
	Outcome  string `parquet:"outcome,dict"`

	// Transport is "http", "websocket", or "tls" and "tcp" of a connection without HTTP.
	Transport string `parquet:"transport,dict"`

	// Opcode is that of RFC 6455, of a WebSocket's message alone; Handshake is the exchange
	// that opened it, if that is known.
	Opcode    *int32 `parquet:"opcode,optional"`
	Handshake *int64 `parquet:"handshake,optional"`

	// The program that made the connection, if it is known.
	PID     *int32 `parquet:"pid,optional"`
	Process string `parquet:"process,dict"`
	Client  string `parquet:"client,dict"`
}

// A fieldRow is a row of fields.parquet: one field of a frame's message, read as
// the definitions have it or, without them, as is likeliest.
//
// Shape: of the values one is set, by kind: Int of integers that fit, Uint of
// larger ones, Double of floating points, Text of strings, Bytes of bytes and of
// garbage; a packed field has its Bytes and, as JSON, its numbers in Text; a
// message has none.
type fieldRow struct {
	Exchange int64  `parquet:"exchange,delta"`
	Dir      string `parquet:"dir,dict"`
	Seq      int32  `parquet:"seq"`

	// Node counts from 0 in each frame. Parent is the node of the enclosing message,
	// -1 at the top.
	Node   int32  `parquet:"node"`
	Parent int32  `parquet:"parent"`
	Path   string `parquet:"path,dict"`
	Number int64  `parquet:"number"`

	// Name is the field's name in the definitions.
	Name string `parquet:"name,dict"`
	Wire string `parquet:"wire,dict"`

	// Off is the offset in the frame's data, Len the length; both include the tag.
	Off  int64  `parquet:"off"`
	Len  int64  `parquet:"len"`
	Kind string `parquet:"kind,dict"`
	Type string `parquet:"type,dict"`

	// P is the probability of the reading, from 0 to 1.
	P      float64  `parquet:"p"`
	Symbol string   `parquet:"symbol,dict"`
	Int    *int64   `parquet:"int,optional"`
	Uint   *uint64  `parquet:"uint,optional"`
	Double *float64 `parquet:"double,optional"`
	Text   *string  `parquet:"text,optional"`
	Bytes  []byte   `parquet:"bytes,optional"`
	Error  string   `parquet:"error,dict"`
}

// Bounds of what is held before it is written.
const (
	maxRows  = 1 << 16
	maxBytes = 32 << 20
)

// Options says what is written. The zero value works.
type Options struct {
	// Type finds the message type of a call's frames, for names; nil: no names.
	Type func(call decode.Call, dir captures.Direction) protoreflect.MessageDescriptor
}

// Written says what an export wrote.
type Written struct{ Exchanges, Frames, Fields int }

// Export writes a capture's frames and fields as two Parquet files.
//
// Limits: it holds one exchange's frames, and 65,536 rows or 32 MiB of a table,
// at a time. Errors: of src and of the writers; what had been written by then
// is no Parquet file.
func Export(ctx context.Context, frames, fields io.Writer, src transfer.Source, o Options) (Written, error) {
	e := &exporter{o: o, frames: newTable[frameRow](frames), fields: newTable[fieldRow](fields)}
	err := e.exportAll(ctx, src)
	if err == nil {
		err = errors.Join(e.frames.close(), e.fields.close())
	}
	if err != nil {
		return e.done, fmt.Errorf("parquet: after %d exchanges: %w", e.done.Exchanges, err)
	}
	return e.done, nil
}

// A table writes rows in groups of bounded size.
type table[T any] struct {
	w     *pq.GenericWriter[T]
	rows  []T
	bytes int
	group int // rows of the open row group
}

func newTable[T any](w io.Writer) *table[T] {
	return &table[T]{w: pq.NewGenericWriter[T](w, pq.Compression(&pq.Zstd), pq.CreatedBy("unwire", "", ""))}
}

// addRow takes a row that holds about n bytes.
func (t *table[T]) addRow(row T, n int) error {
	t.rows = append(t.rows, row)
	t.bytes += n
	t.group++
	if len(t.rows) < 1024 && t.bytes < maxBytes {
		return nil
	}
	return t.write()
}

func (t *table[T]) write() error {
	if _, err := t.w.Write(t.rows); err != nil {
		return err
	}
	clear(t.rows)
	t.rows = t.rows[:0]
	if t.group < maxRows && t.bytes < maxBytes {
		return nil
	}
	t.group, t.bytes = 0, 0
	return t.w.Flush()
}

func (t *table[T]) close() error {
	return errors.Join(t.write(), t.w.Close())
}
