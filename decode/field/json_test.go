package field

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// A contractField is a Field as encoding/json would write it by tags.
type contractField struct {
	N            uint64           `json:"n"`
	Name         string           `json:"name,omitempty"`
	Wire         string           `json:"wire"`
	Off          int              `json:"off"`
	Len          int              `json:"len"`
	Val          int              `json:"val"`
	Kind         string           `json:"kind"`
	Type         string           `json:"type"`
	Value        any              `json:"value,omitempty"`
	Symbol       string           `json:"symbol,omitempty"`
	Form         string           `json:"form,omitempty"`
	Shape        string           `json:"shape,omitempty"`
	ShapeP       float64          `json:"shape_p,omitempty"`
	Note         string           `json:"note,omitempty"`
	Chosen       bool             `json:"chosen,omitempty"`
	P            float64          `json:"p"`
	Alternatives []Alternative    `json:"alternatives"`
	Fields       []*contractField `json:"fields,omitzero"`
	Cut          *contractField   `json:"cut,omitempty"`
	Error        string           `json:"error,omitempty"`
}

func contract(f *Field) *contractField {
	if f == nil {
		return nil
	}
	c := &contractField{
		N: f.N, Name: f.Name, Wire: f.Wire, Off: f.Off, Len: f.Len, Val: f.Val, Kind: f.Kind, Type: f.Type, Value: f.Value,
		Symbol: f.Symbol, Form: f.Form, Shape: f.Shape, ShapeP: f.ShapeP, Note: f.Note, Chosen: f.Chosen,
		P: f.P, Alternatives: f.Alternatives, Cut: contract(f.Cut), Error: f.Error,
	}
	if f.Fields != nil {
		c.Fields = []*contractField{}
	}
	for _, child := range f.Fields {
		c.Fields = append(c.Fields, contract(child))
	}
	return c
}

func finite[T float32 | float64](f T) bool {
	return !math.IsNaN(float64(f)) && !math.IsInf(float64(f), 0)
}

func drawValue(t *rapid.T) any {
	float32s := rapid.Float32().Filter(finite[float32])
	float64s := rapid.Float64().Filter(finite[float64])
	return rapid.OneOf(
		rapid.Just[any](nil), rapid.Just[any]([]byte(nil)), rapid.Just[any]([]uint64(nil)),
		rapid.String().AsAny(), rapid.Just[any]("\b\f\n\r\t\x00\x1f\x7f<&>\u2028\xff\"\\"),
		rapid.SliceOf(rapid.Byte()).AsAny(), rapid.Bool().AsAny(),
		rapid.Int32().AsAny(), rapid.Int64().AsAny(), rapid.Uint32().AsAny(), rapid.Uint64().AsAny(),
		float32s.AsAny(), float64s.AsAny(),
		rapid.SampledFrom([]any{float32(1e-6), float32(1e21), float32(1e-7), 1e-9, 1e-7, 1e-6, 1e20, 1e21, 1e-300}),
		rapid.SliceOf(rapid.Int64()).AsAny(), rapid.SliceOf(rapid.Uint64()).AsAny(), rapid.SliceOf(rapid.Bool()).AsAny(),
		rapid.SliceOf(float32s).AsAny(), rapid.SliceOf(float64s).AsAny(),
		rapid.Just[any]([]any{"NaN", 1.5, float32(0.1), int64(3)}),
	).Draw(t, "value")
}

func drawField(t *rapid.T, depth int) *Field {
	text := rapid.OneOf(rapid.Just(""), rapid.String(), rapid.Just("a\b<\u2029>"))
	f := &Field{
		N: rapid.Uint64().Draw(t, "n"), Name: text.Draw(t, "name"), Wire: "len", Off: rapid.Int().Draw(t, "off"), Len: 3, Val: 1,
		Kind: "string", Type: text.Draw(t, "type"), Value: drawValue(t), Symbol: text.Draw(t, "symbol"), Form: text.Draw(t, "form"),
		Shape: text.Draw(t, "shape"), ShapeP: rapid.SampledFrom([]float64{0, 0.5, 1}).Draw(t, "shape_p"), Note: text.Draw(t, "note"),
		Chosen: rapid.Bool().Draw(t, "chosen"), P: rapid.SampledFrom([]float64{0, 0.0001, 0.9142, 1}).Draw(t, "p"),
		Alternatives: []Alternative{}, Error: text.Draw(t, "error"),
	}
	if rapid.Bool().Draw(t, "alternatives") {
		f.Alternatives = append(f.Alternatives, Alternative{"bytes", "bytes", 0.0858}, Alternative{"packed", "packed varint", 0.01})
	}
	if depth > 0 {
		f.Fields = []*Field{}
		for range rapid.IntRange(0, 2).Draw(t, "fields") {
			f.Fields = append(f.Fields, drawField(t, depth-1))
		}
		if rapid.Bool().Draw(t, "cut") {
			f.Cut = drawField(t, depth-1)
		}
	}
	return f
}

// MarshalJSON writes what encoding/json would by tags alone.
func TestMarshalJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawField(t, 2)
		got, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		want, err := json.Marshal(contract(f))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("wrote\n%s, want\n%s", got, want)
		}
	})
}

// A field that was read has what was written, but for its value, which stays JSON.
func TestFieldIsReadBack(t *testing.T) {
	f := &Field{
		N: 3, Name: "text", Wire: "len", Off: 7, Len: 6, Val: 9, Kind: "string", Type: "string", Value: "Lagos", Symbol: "s", Form: "uuid",
		Shape: "Timestamp", ShapeP: 0.75, Note: "n", Chosen: true, P: 0.9, Alternatives: []Alternative{{"bytes", "bytes", 0.1}}, Error: "e",
		Fields: []*Field{{N: 1, Wire: "varint", Alternatives: []Alternative{}}}, Cut: &Field{N: 2, Alternatives: []Alternative{}},
	}
	written, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	var got Field
	if err := json.Unmarshal(written, &got); err != nil {
		t.Fatal(err)
	}
	f.Value, f.Literal = nil, json.RawMessage(`"Lagos"`)
	if !reflect.DeepEqual(&got, f) {
		t.Errorf("read\n%+v, want\n%+v", &got, f)
	}
}

func TestJSONValue(t *testing.T) {
	nan := math.Float32frombits(0x7fc00001)
	if got := JSONValue([]float32{1, nan, float32(math.Inf(-1))}); !reflect.DeepEqual(got, []any{float32(1), "NaN", "-Infinity"}) {
		t.Errorf("%v", got)
	}
}
