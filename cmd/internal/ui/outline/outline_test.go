package outline

import (
	"testing"

	"unwire/decode"
	"unwire/decode/wire"
)

// checkOutline fails if rows, spans and visible rows of an outline contradict each other.
func checkOutline(t *testing.T, o *Outline) {
	t.Helper()
	if len(o.Rows) > maxRows || len(o.Layers) > maxLayers {
		t.Fatalf("%d rows, %d layers", len(o.Rows), len(o.Layers))
	}
	for i, r := range o.Rows {
		data := o.Layers[r.Layer].Data
		if r.Off < 0 || r.Off > r.Tag || r.Tag > r.Val || r.Val > r.End || r.End > len(data) {
			t.Fatalf("row %d: %d ≤ %d ≤ %d ≤ %d does not hold, or passes the %d bytes of its layer", i, r.Off, r.Tag, r.Val, r.End, len(data))
		}
		if int(r.Parent) >= i || int(r.Last) < i || int(r.Last) >= len(o.Rows) {
			t.Fatalf("row %d of %d has the parent %d and the last row %d", i, len(o.Rows), r.Parent, r.Last)
		}
	}

	// Spans follow each other, and the row of a byte is that of its span.
	for layer, l := range o.Layers {
		at := 0
		for _, s := range o.Spans(int32(layer), 0, len(l.Data)) {
			if s.From < at || s.To <= s.From || s.To > len(l.Data) {
				t.Fatalf("layer %d: span %+v after offset %d", layer, s, at)
			}
			at = s.To
		}
	}

	// All rows are visible, unless one that is closed contains them.
	if v := o.Visible(nil); v.Total != len(o.Rows) {
		t.Fatalf("%d of %d rows are visible", v.Total, len(o.Rows))
	}
	if len(o.Rows) > 0 {
		hidden := int(o.Rows[0].Last)
		v := o.Visible([]int32{0})
		if v.Total != len(o.Rows)-hidden || len(v.Rows(0, v.Total)) != v.Total {
			t.Fatalf("%d rows are visible while the first, with %d rows inside, is closed", v.Total, hidden)
		}
	}
}

// FuzzOutline makes outlines of any bytes, as a message and as JSON.
func FuzzOutline(f *testing.F) {
	f.Add([]byte("\x08\x96\x01\x12\x07testing\x1a\x04\x08\x01\x10\x02"))
	f.Add([]byte("\x0a\x1f{\"a\":[1,{\"b\":null}],\"c\":\"eyJ4Ijo\"}"))
	f.Add([]byte(`{"a": [1, 2.5, {"b": "{\"c\":true}"}], "a": null}`))
	f.Add([]byte("\x0b\x10\x01\x0c"))
	f.Fuzz(func(t *testing.T, data []byte) {
		checkOutline(t, Message(data, decode.View{}.Fields(wire.Parse(data, wire.Options{}))))
		checkOutline(t, JSON(data))
	})
}
