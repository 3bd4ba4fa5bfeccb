package parquet

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	pq "github.com/parquet-go/parquet-go"

	"unwire/captures"
	"unwire/captures/internal/samples"
	"unwire/captures/store"
	"unwire/decode"
	"unwire/decode/envelope"
	"unwire/decode/field"
)

func export(t testing.TB, s *store.Store) (frames []frameRow, fields []fieldRow, done Result) {
	t.Helper()
	var a, b bytes.Buffer
	done, err := Export(context.Background(), &a, &b, s, Options{})
	if err != nil {
		t.Fatal(err)
	}
	frames, err = pq.Read[frameRow](bytes.NewReader(a.Bytes()), int64(a.Len()))
	if err != nil {
		t.Fatal(err)
	}
	fields, err = pq.Read[fieldRow](bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	return frames, fields, done
}

// TestTables: the rows are the frames and the fields that decode finds.
func TestTables(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	from := samples.Store(t, t.TempDir(), store.Options{})
	samples.Record(t, from, 6, 40)
	frames, fields, done := export(t, from)
	if len(frames) != done.Frames || len(fields) != done.Fields || done.Exchanges != 40 || done.Frames < 40 || done.Fields < 40 {
		t.Fatalf("%d rows, %d rows of %+v", len(frames), len(fields), done)
	}
	at := 0
	for ex, err := range from.Exchanges(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		d, err := decode.Decode(ctx, from, ex.ID, decode.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range d.Frames {
			f, row := &d.Frames[i], frames[at]
			at++
			if row.Exchange != ex.ID || row.Dir != f.Dir.String() || int(row.Seq) != f.Seq || !bytes.Equal(row.Data, f.Data) ||
				row.TNS != int64(f.T) || !row.Time.Equal(ex.Started.Add(f.T)) || row.Compressed != f.Compressed() || row.URL != ex.URL ||
				row.Protocol != string(d.Protocol) || row.End != (f.End != nil) || row.Len != int64(len(f.Raw)) {
				t.Fatalf("row %d: %+v", at, row)
			}
			n := 0
			if f.Tree != nil {
				n = count(decode.View{}.Fields(f.Tree))
			}
			for range n {
				if fields[0].Exchange != ex.ID || fields[0].Dir != row.Dir || fields[0].Seq != row.Seq {
					t.Fatalf("field %+v in frame %+v", fields[0], row)
				}
				fields = fields[1:]
			}
		}
	}
	if at != len(frames) || len(fields) != 0 {
		t.Errorf("%d frames and %d fields are nobody's", len(frames)-at, len(fields))
	}
}

func count(fields []*field.Field) int {
	n := len(fields)
	for _, f := range fields {
		n += count(f.Fields)
	}
	return n
}

// TestValues: one frame with a value of every kind.
func TestValues(t *testing.T) {
	msg := []byte{0x08, 0x96, 0x01}                                                     // 1: 150
	msg = append(msg, 0x10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01) // 2: the largest
	msg = append(msg, "\x1a\x0bhello world"...)                                         // 3
	msg = binary.LittleEndian.AppendUint64(append(msg, 0x21), math.Float64bits(2.5))    // 4
	msg = append(msg, "\x2a\x0d\x0a\x0bhello there\x2a\x0d\x0a\x0bhello again"...)      // 5: two messages
	msg = append(msg, "\x32\x08\x00\x01\x02\xff\xfe\x80\x81\x82"...)                    // 6: bytes
	from := samples.Store(t, t.TempDir(), store.Options{})
	rec, err := from.Begin(captures.Exchange{
		Method: "POST", URL: "https://h/p.S/M", HTTP: "2", Status: 200, Started: time.Unix(1700000000, 5),
		RequestHeaders: captures.Headers{{Name: "content-type", Value: "application/connect+proto"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	rec.ChunkAt(captures.Up, 7, envelope.Append(nil, 0, msg))
	rec.EndAt(9, captures.Complete, "")
	if err := from.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	frames, fields, _ := export(t, from)
	if len(frames) != 1 || frames[0].Service != "p.S" || frames[0].RPC != "M" || frames[0].TNS != 7 {
		t.Fatalf("%+v", frames)
	}
	var got []string
	for _, f := range fields {
		line := fmt.Sprintf("%d %d %s %s", f.Node, f.Parent, f.Path, f.Wire)
		switch {
		case f.Int != nil:
			line += fmt.Sprint(" int ", *f.Int)
		case f.Uint != nil:
			line += fmt.Sprint(" uint ", *f.Uint)
		case f.Double != nil:
			line += fmt.Sprint(" double ", *f.Double)
		case f.Text != nil:
			line += " text " + *f.Text
		case f.Bytes != nil:
			line += fmt.Sprintf(" bytes %x", f.Bytes)
		}
		got = append(got, line)
	}
	want := []string{
		"0 -1 1 varint int 150", "1 -1 2 varint int -1", "2 -1 3 len text hello world", "3 -1 4 i64 double 2.5",
		"4 -1 5[0] len", "5 4 5[0].1 len text hello there", "6 -1 5[1] len", "7 6 5[1].1 len text hello again",
		"8 -1 6 len bytes 000102fffe808182",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestGroups: rows beyond what is held at a time arrive too, in order.
func TestGroups(t *testing.T) {
	from := samples.Store(t, t.TempDir(), store.Options{KeepSecrets: true})
	rec, err := from.Begin(captures.Exchange{
		Method: "POST", URL: "https://h/p.S/M", HTTP: "2", RequestHeaders: captures.Headers{{Name: "content-type", Value: "application/connect+proto"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	const n = 70_000
	var body []byte
	for i := range n {
		body = envelope.Append(body, 0, []byte{0x08, byte(i % 100)})
	}
	rec.ChunkAt(captures.Up, 1, body)
	rec.EndAt(2, captures.Complete, "")
	if err := from.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	frames, fields, _ := export(t, from)
	if len(frames) != n || len(fields) != n {
		t.Fatalf("%d, %d rows", len(frames), len(fields))
	}
	for i := range n {
		if int(frames[i].Seq) != i || int(fields[i].Seq) != i || *fields[i].Int != int64(i%100) {
			t.Fatalf("row %d: frame %d, field of %d", i, frames[i].Seq, fields[i].Seq)
		}
	}
}

func BenchmarkExport(b *testing.B) {
	from := samples.Store(b, b.TempDir(), store.Options{KeepSecrets: true})
	samples.Record(b, from, 1, 200)
	rows := 0
	for b.Loop() {
		var frames, fields bytes.Buffer
		done, err := Export(context.Background(), &frames, &fields, from, Options{})
		if err != nil {
			b.Fatal(err)
		}
		rows += done.Frames + done.Fields
	}
	b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
}

// TestConnections: the frames of a WebSocket and of a connection without HTTP say what
// they are.
func TestConnections(t *testing.T) {
	from := samples.Store(t, t.TempDir(), store.Options{KeepSecrets: true})
	begin := func(ex captures.Exchange) captures.Recording {
		rec, err := from.Begin(ex)
		if err != nil {
			t.Fatal(err)
		}
		return rec
	}
	opened := begin(captures.Exchange{Method: "GET", URL: "https://h/", HTTP: "1.1", Status: 101})
	opened.EndAt(1, captures.Complete, "")
	socket := begin(captures.Exchange{Transport: captures.WebSocket, URL: "wss://h/", Process: captures.Process{PID: 7, Name: "node"}})
	socket.Relate(captures.HandshakeOf, opened.ID())
	socket.MessageAt(captures.Up, 1, captures.OpText|captures.OpFinal, []byte("hello"))
	socket.EndAt(3, captures.Complete, "")
	mail := begin(captures.Exchange{Transport: captures.RawTCP, URL: "tcp://h:25"})
	mail.ChunkAt(captures.Down, 1e6, []byte("220 "))
	mail.EndAt(4e6, captures.Complete, "")
	if err := from.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	var frames, fields bytes.Buffer
	if _, err := Export(context.Background(), &frames, &fields, from, Options{}); err != nil {
		t.Fatal(err)
	}
	type row struct {
		Exchange  int64  `parquet:"exchange"`
		Transport string `parquet:"transport"`
		Opcode    *int32 `parquet:"opcode,optional"`
		Handshake *int64 `parquet:"handshake,optional"`
		PID       *int32 `parquet:"pid,optional"`
		Process   string `parquet:"process"`
		Data      []byte `parquet:"data"`
	}
	rows, err := pq.Read[row](bytes.NewReader(frames.Bytes()), int64(frames.Len()))
	if err != nil {
		t.Fatal(err)
	}
	op, handshake, pid := int32(1), int64(1), int32(7)
	want := []row{
		{Exchange: 2, Transport: "websocket", Opcode: &op, Handshake: &handshake, PID: &pid, Process: "node", Data: []byte("hello")},
		{Exchange: 3, Transport: "tcp", Data: []byte("220 ")},
	}
	if d := cmp.Diff(want, rows); d != "" {
		t.Error(d)
	}
}

// TestRewritten: rows of an exchange that rules changed have the names of the rules, and which bytes they are.
func TestRewritten(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.uwc")
	s, err := store.Create(path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"edited", "same"} {
		rec, err := s.Begin(captures.Exchange{Method: "POST", URL: "https://a.example/" + text, Started: time.Unix(1_700_000_000, 0)})
		if err != nil {
			t.Fatal(err)
		}
		rec.Chunk(captures.Up, []byte("asked"))
		rec.Response(200, nil)
		rec.Chunk(captures.Down, []byte("answer"))
		if text == "edited" {
			rec.Edit(captures.Up, 0, 5, "first", []byte("begged"))
			rec.Edit(captures.Down, 0, 6, "intercept", []byte("other"))
		}
		rec.End(captures.Complete, "")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for forwarded, want := range map[bool][]string{
		false: {"1 up asked [first intercept] received", "1 down answer [first intercept] received", "2 up asked [] ", "2 down answer [] "},
		true:  {"1 up begged [first intercept] forwarded", "1 down other [first intercept] forwarded", "2 up asked [] ", "2 down answer [] "},
	} {
		from, err := store.Open(path, store.ReadOptions{Forwarded: [2]bool{forwarded, forwarded}})
		if err != nil {
			t.Fatal(err)
		}
		frames, _, _ := export(t, from)
		var got []string
		for _, f := range frames {
			got = append(got, fmt.Sprintf("%d %s %s %v %s", f.Exchange, f.Dir, f.Data, f.Rules, f.Shown))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("forwarded %t: %s", forwarded, diff)
		}
		if err := from.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
