// Package parquet exports the frames of a capture and their fields as two tables, frames.parquet and
// fields.parquet, for DuckDB, ClickHouse, Spark and similar tools. Package formats uses it; nothing is read in
// this format.
//
//	result, err := parquet.Export(ctx, frames, fields, src, parquet.Options{})
//
// A frame is identified by (exchange, dir, seq). Its fields have the same three columns, and a column node that
// numbers them in the order of the bytes. The columns are the members of frameRow and fieldRow. Times are UTC in
// nanoseconds. Columns are compressed with zstd.
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

// A frameRow is a row of frames.parquet: one frame of an exchange.
type frameRow struct {
	// Exchange is the number of the exchange in the capture, from 1.
	Exchange int64 `parquet:"exchange,delta"`

	// Dir is the direction of the frame: "up" from client to server, or "down".
	Dir string `parquet:"dir,dict"`

	// Seq is the number of the frame in its direction, from 0.
	Seq int32 `parquet:"seq"`
	// Time is the time at which the frame arrived, in UTC.
	Time time.Time `parquet:"time,timestamp(nanosecond)"`

	// TNS is the time at which the frame arrived, in nanoseconds since the start of the exchange.
	TNS int64 `parquet:"t_ns"`
	// Flags is the flags byte of the frame's envelope, as in gRPC and Connect; 0 if there is no envelope.
	Flags int32 `parquet:"flags"`
	// Compressed means that the payload was compressed on the wire; Data is decompressed.
	Compressed bool `parquet:"compressed"`
	// Encoding is the name of the compression of the frame, such as "gzip"; "" if there is none.
	Encoding string `parquet:"encoding,dict"`

	// End is set for the frame that ends the call: end-of-stream message, trailers or error.
	End bool `parquet:"end"`
	// Event is the event name, if the frame is a server-sent event; "" otherwise.
	Event string `parquet:"event,dict"`

	// Partial is set if the body ended within the frame.
	Partial bool `parquet:"partial"`

	// Off is the offset of the frame in the body of its direction, in bytes.
	Off int64 `parquet:"off"`
	// Len is the length of the payload as sent, in bytes.
	Len int64 `parquet:"len"`

	// Data is the decompressed payload of the frame.
	Data []byte `parquet:"data"`
	// Type is the full name of the message type; "" if not known.
	Type string `parquet:"type,dict"`
	// Error describes why the frame could not be decoded; "" if it was.
	Error string `parquet:"error,dict"`

	// Method is the HTTP method; as a property of the exchange, it is repeated in each row, so that queries
	// need no join.
	Method string `parquet:"method,dict"`
	// URL is the absolute URL of the exchange.
	URL string `parquet:"url,dict"`
	// HTTP is the HTTP version that the client spoke: "1.0", "1.1" or "2"; "" if none.
	HTTP string `parquet:"http,dict"`
	// Status is the HTTP status code; 0 if there was no response.
	Status int32 `parquet:"status"`
	// Protocol is the detected RPC protocol or streaming format of the exchange, such as "connect-stream".
	Protocol string `parquet:"protocol,dict"`
	// Service is the full name of the RPC service; "" if the exchange is not a call.
	Service string `parquet:"service,dict"`
	// RPC is the name of the called method, without the service; "" if the exchange is not a call.
	RPC string `parquet:"rpc,dict"`
	// Codec is the encoding of the messages, such as "proto" or "json"; "" if unknown.
	Codec string `parquet:"codec,dict"`
	// Code is the status code of the RPC call; "" if unknown.
	Code string `parquet:"code,dict"`
	// Outcome is how the exchange ended, such as "complete"; "" if it was in flight.
	Outcome string `parquet:"outcome,dict"`

	// Rules are the names of the rules that changed the exchange before it was forwarded, in alphabetical order, with
	// "intercept" for changes by hand; empty if nothing was changed. Like Method, it is a property of the exchange.
	Rules []string `parquet:"rules,list"`
	// Shown is which version of an exchange that rules changed is in the row: "received", "forwarded", "server" (what
	// the server received and sent) or "client" (what the client sent and received); "" if nothing was changed.
	Shown string `parquet:"shown,dict"`

	// Transport is the protocol whose payload is recorded: "http", "websocket", "tls" or "tcp".
	Transport string `parquet:"transport,dict"`

	// Opcode is the opcode of a WebSocket message (RFC 6455); nil for other frames.
	Opcode *int32 `parquet:"opcode,optional"`
	// Handshake is the number of the exchange that opened the WebSocket; nil if unknown or not a WebSocket.
	Handshake *int64 `parquet:"handshake,optional"`

	// PID is the process id of the client program; null if not known.
	PID *int32 `parquet:"pid,optional"`
	// Process is the base name of the client program's executable; "" if unknown.
	Process string `parquet:"process,dict"`
	// Client is the product name that the client program gives itself, for instance in its User-Agent header;
	// "" if unknown.
	Client string `parquet:"client,dict"`
	// Version is the version that the client program gives itself, for instance in its User-Agent header; ""
	// if unknown.
	Version string `parquet:"client_version,dict"`
}

// A fieldRow is a row of fields.parquet: one field of a frame's message, decoded by the definitions or, without
// them, by type inference.
//
// Shape: exactly one value column is set, depending on the type: Int for integers that fit, Uint for larger
// ones, Double for floating-point numbers, Text for strings, Bytes for bytes and for data that cannot be
// decoded. A packed field has Bytes, and its numbers as JSON in Text. A message has no value.
type fieldRow struct {
	// Exchange is the number of the exchange in the capture, from 1.
	Exchange int64 `parquet:"exchange,delta"`
	// Dir is the direction of the frame that contains the field, "up" or "down".
	Dir string `parquet:"dir,dict"`
	// Seq is the number of the frame in its direction, from 0.
	Seq int32 `parquet:"seq"`

	// Node is the number of the field in its frame, from 0, in depth-first order.
	Node int32 `parquet:"node"`
	// Parent is the node of the enclosing message; -1 for a field of the top-level message.
	Parent int32 `parquet:"parent"`
	// Path is the field numbers from the top-level message down to the field, joined by dots, with an index
	// for repeated fields, such as "1.4[0].2".
	Path string `parquet:"path,dict"`
	// Number is the protobuf field number.
	Number int64 `parquet:"number"`

	// Name is the name of the field; "" if not known.
	Name string `parquet:"name,dict"`
	// Wire is the name of the protobuf wire type: varint, i64, len, group, i32, or garbage for bytes that
	// cannot be parsed.
	Wire string `parquet:"wire,dict"`

	// Off is the offset of the field's tag in the decompressed payload of the frame, in bytes.
	Off int64 `parquet:"off"`
	// Len is the length of the field including its tag, in bytes.
	Len int64 `parquet:"len"`
	// Kind is how the value is interpreted, from the definitions or inferred, such as "string", "message" or
	// "packed".
	Kind string `parquet:"kind,dict"`
	// Type is the protobuf type of the field, such as "int32" or the name of a message; "" for a message
	// whose definition is unknown.
	Type string `parquet:"type,dict"`

	// P is the probability, from 0 to 1, that the inferred type of the field is right.
	P float64 `parquet:"p"`
	// Symbol is the name of the enum value; "" for other fields or if unknown.
	Symbol string `parquet:"symbol,dict"`
	// Int is the value of an integer, bool or enum that fits into 64 bits with a sign; nil otherwise.
	Int *int64 `parquet:"int,optional"`
	// Uint is the value of an unsigned integer that is too large for Int; nil otherwise.
	Uint *uint64 `parquet:"uint,optional"`
	// Double is the value of a floating-point number; nil for other fields.
	Double *float64 `parquet:"double,optional"`
	// Text is the value of a string, or the numbers of a packed field as JSON; nil for other fields.
	Text *string `parquet:"text,optional"`
	// Bytes is the value of a bytes, packed or undecodable field; nil for other fields.
	Bytes []byte `parquet:"bytes,optional"`
	// Error describes why the field could not be decoded; "" if it was.
	Error string `parquet:"error,dict"`
}

// Limits of the rows, in number and approximate bytes, that are buffered before a row group is written.
const (
	maxGroupRows  = 1 << 16
	maxGroupBytes = 32 << 20
)

// Options are the options of Export. The zero value works.
type Options struct {
	// Type returns the message type for the frames of a call in one direction, which supplies field
	// names. If Type is nil, exported fields have no names.
	Type func(call decode.Call, dir captures.Direction) protoreflect.MessageDescriptor
}

// A Result contains the counts of a Parquet export.
type Result struct {
	// Exchanges is the number of exchanges that were written.
	Exchanges int
	// Frames is the number of frames in these exchanges, and thus of rows in frames.parquet.
	Frames int
	// Fields is the number of fields in these frames, and thus of rows in fields.parquet.
	Fields int
}

// Export writes the frames and fields of a capture as two Parquet files.
//
// Limits: the frames of one exchange, and 65,536 rows or 32 MiB of each table, are in memory at a time. Errors:
// those of src and of the writers. The output is then not a valid Parquet file.
func Export(ctx context.Context, frames, fields io.Writer, src transfer.Source, o Options) (Result, error) {
	e := &exporter{o: o, frames: newTable[frameRow](frames), fields: newTable[fieldRow](fields)}
	err := e.exportAll(ctx, src)
	if err == nil {
		err = errors.Join(e.frames.close(), e.fields.close())
	}
	if err != nil {
		return e.done, fmt.Errorf("parquet: the export failed after %d exchanges: %w", e.done.Exchanges, err)
	}
	return e.done, nil
}

// A table writes rows to a Parquet file, in row groups of limited size.
type table[T any] struct {
	// w encodes the rows and writes the Parquet file.
	w *pq.GenericWriter[T]

	// rows are the rows that were added but not written yet.
	rows []T
	// bytes is the approximate size in memory of the buffered rows.
	bytes int
	// groupRows is the number of rows already written to the current row group.
	groupRows int
}

// newTable returns a Parquet table that is written to w.
func newTable[T any](w io.Writer) *table[T] {
	return &table[T]{w: pq.NewGenericWriter[T](w, pq.Compression(&pq.Zstd), pq.CreatedBy("unwire", "", ""))}
}

// addRow buffers a row of approximately n bytes, and writes the buffered rows if they exceed a limit.
func (t *table[T]) addRow(row T, n int) error {
	t.rows = append(t.rows, row)
	t.bytes += n
	t.groupRows++
	if len(t.rows) < 1024 && t.bytes < maxGroupBytes {
		return nil
	}
	return t.write()
}

// write writes the buffered rows to the Parquet writer, and ends the row group if it is large enough.
func (t *table[T]) write() error {
	if _, err := t.w.Write(t.rows); err != nil {
		return err
	}
	clear(t.rows)
	t.rows = t.rows[:0]
	if t.groupRows < maxGroupRows && t.bytes < maxGroupBytes {
		return nil
	}
	t.groupRows, t.bytes = 0, 0
	return t.w.Flush()
}

// close writes the buffered rows and the footer of the Parquet file.
func (t *table[T]) close() error {
	return errors.Join(t.write(), t.w.Close())
}
