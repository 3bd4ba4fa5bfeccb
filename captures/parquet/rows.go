package parquet

import (
	"context"
	"encoding/json"
	"iter"
	"math"
	"slices"
	"strconv"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/captures/transfer"
	"unwire/decode"
	"unwire/decode/field"
)

// An exporter converts exchanges to rows of the two Parquet tables, one for frames and one for fields.
type exporter struct {
	// o are the options of the export.
	o Options
	// frames writes the table frames.parquet, with one row for each frame.
	frames *table[frameRow]
	// fields writes the table fields.parquet, with one row for each protobuf field.
	fields *table[fieldRow]

	// done contains the numbers of exchanges, frames and fields written so far.
	done Result

	// relations are the links between the exchanges of the capture, such as from a WebSocket to its
	// handshake.
	relations transfer.Relations

	// rewritten says which rules changed the current exchange; nil if none did.
	rewritten *captures.Rewritten

	// memory is reused for one frame after another.
	memory decode.Memory
}

// exportAll writes the rows of all exchanges of a capture.
func (e *exporter) exportAll(ctx context.Context, src transfer.Source) error {
	var err error
	if e.relations, err = transfer.LoadRelations(ctx, src); err != nil {
		return err
	}
	for rec, err := range src.Exchanges(ctx) {
		if err != nil {
			return err
		}
		ex, err := decode.DecodeRecord(ctx, src, rec, decode.Options{NoChoices: true})
		if err != nil {
			return err
		}
		if e.rewritten, err = src.Rewritten(ctx, rec.ID); err != nil {
			return err
		}
		for i := range ex.Frames {
			if err := e.addFrame(rec, ex, &ex.Frames[i]); err != nil {
				return err
			}
		}
		e.done.Exchanges++
	}
	return nil
}

// addFrame writes the row of a frame f and the rows of its fields. rec is the recorded exchange, and ex the
// same exchange decoded.
func (e *exporter) addFrame(rec *captures.Exchange, ex *decode.Exchange, f *decode.Frame) error {
	row := frameRow{
		Exchange: ex.ID, Dir: f.Dir.String(), Seq: int32(f.Seq), Time: ex.Started.Add(f.T).UTC(), TNS: int64(f.T),
		Flags: int32(f.Flags), Compressed: f.Compressed(), Encoding: f.Encoding, End: f.End != nil, Event: f.Event, Partial: f.Partial,
		Off: f.Offset, Len: int64(len(f.Raw)), Data: f.Data,
		Method: ex.Method, URL: ex.URL, HTTP: ex.HTTP, Status: int32(ex.Status), Protocol: string(ex.Protocol),
		Service: ex.Service, RPC: ex.RPC, Codec: ex.Codec, Code: ex.Code, Outcome: string(ex.Outcome),
	}
	e.setConnection(&row, rec, f)
	if e.rewritten != nil {
		row.Rules, row.Shown = e.rewritten.Rules, string(e.rewritten.Shown)
	}
	if f.Err != nil {
		row.Error = f.Err.Error()
	}
	var md protoreflect.MessageDescriptor
	if f.Tree != nil && e.o.Type != nil {
		md = e.o.Type(ex.Call, f.Dir)
	}
	if md != nil {
		row.Type = string(md.FullName())
	}

	// The size is an estimate: the data and some overhead.
	if err := e.frames.addRow(row, len(f.Data)+256); err != nil {
		return err
	}
	e.done.Frames++
	if f.Tree == nil {
		return nil
	}
	t := fieldWriter{e: e, common: fieldRow{Exchange: ex.ID, Dir: row.Dir, Seq: row.Seq}, data: f.Data}
	// How often each field occurs is known before the fields are decoded, so they need not be in memory at once.
	count := map[uint64]int{}
	for c := range f.Tree.Children(0) {
		count[f.Tree.Node(c).Number]++
	}
	return t.addFields(decode.View{Type: md, Memory: &e.memory}.Each(f.Tree), count, "", -1)
}

// setConnection sets the columns of the row about the transport and the client program.
func (e *exporter) setConnection(row *frameRow, ex *captures.Exchange, f *decode.Frame) {
	if row.Transport = string(ex.Transport); ex.Transport == captures.HTTP {
		row.Transport = "http"
	}
	if ex.Transport == captures.WebSocket {
		op := int32(f.Opcode.Kind())
		row.Opcode = &op
		if by := e.relations.Handshake(ex.ID); by != 0 {
			row.Handshake = &by
		}
	}
	if ex.Process.PID > 0 {
		pid := int32(min(ex.Process.PID, math.MaxInt32))
		row.PID = &pid
	}
	row.Process, row.Client, row.Version = ex.Process.Name, ex.Process.Client, ex.Process.Version
}

// A fieldWriter writes the fields of one frame as rows of fields.parquet, and numbers them.
type fieldWriter struct {
	// e writes the rows.
	e *exporter

	// common contains the column values that all rows of the frame share.
	common fieldRow

	// data is the decompressed payload of the frame.
	data []byte
	// nextNode is the number of the next field of the frame, from 0.
	nextNode int32
}

// addFields writes rows for fields and those nested in them, depth first. count has the number of fields of each
// number. prefix is the path of the enclosing message, and parent its node number; -1 at the top level.
func (t *fieldWriter) addFields(fields iter.Seq[*field.Field], count map[uint64]int, prefix string, parent int32) error {
	// Elements of a repeated field get an index in their path.
	at := map[uint64]int{}
	for f := range fields {
		row := t.common
		row.Node, row.Parent = t.nextNode, parent
		t.nextNode++
		row.Path = prefix + strconv.FormatUint(f.N, 10)
		// The field is repeated.
		if count[f.N] > 1 {
			row.Path += "[" + strconv.Itoa(at[f.N]) + "]"
			at[f.N]++
		}
		row.Number, row.Name, row.Wire, row.Off, row.Len = int64(f.N), f.Name, f.Wire, int64(f.Off), int64(f.Len)
		row.Kind, row.Type, row.P, row.Symbol, row.Error = f.Kind, f.Type, f.P, f.Symbol, f.Error
		row.setValue(f, t.data)
		if err := t.e.fields.addRow(row, len(row.Bytes)+128); err != nil {
			return err
		}
		t.e.done.Fields++
		if len(f.Fields) == 0 {
			continue
		}
		inside := map[uint64]int{}
		for _, child := range f.Fields {
			inside[child.N]++
		}
		if err := t.addFields(slices.Values(f.Fields), inside, row.Path+".", row.Node); err != nil {
			return err
		}
	}
	return nil
}

// setValue sets the one value column that fits the field's type. data is the frame's payload.
func (row *fieldRow) setValue(f *field.Field, data []byte) {
	switch v := f.Value.(type) {
	case nil:
	case bool:
		n := int64(0)
		if v {
			n = 1
		}
		row.Int = &n

	// JSON has no number for NaN and infinities, so they are strings.
	case string:
		if d, ok := notFinite(v); ok && f.Kind != "string" {
			row.Double = &d
		} else {
			row.Text = &v
		}
	case []byte:
		row.Bytes = v
	case float32:
		d := float64(v)
		row.Double = &d
	case float64:
		row.Double = &v
	case uint64:
		if v > math.MaxInt64 {
			row.Uint = &v
			return
		}
		n := int64(v)
		row.Int = &n
	case int64:
		row.Int = &v
	case int32:
		n := int64(v)
		row.Int = &n
	case uint32:
		n := int64(v)
		row.Int = &n
	// The value is a packed field.
	default:
		row.Bytes = data[f.Val : f.Off+f.Len]
		if text, err := json.Marshal(v); err == nil {
			s := string(text)
			row.Text = &s
		}
	}
}

// notFinite converts the strings "NaN", "Infinity" and "-Infinity" to numbers; ok is false for other strings.
func notFinite(s string) (float64, bool) {
	switch s {
	case "NaN":
		return math.NaN(), true
	case "Infinity":
		return math.Inf(1), true
	case "-Infinity":
		return math.Inf(-1), true
	}
	return 0, false
}
