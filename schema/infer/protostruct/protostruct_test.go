package protostruct

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

type inner struct {
	N int64 `pb:"1"`
}

type embedded struct {
	Sum int64 `pb:"20"`
}

type outer struct {
	Bool   bool              `pb:"1"`
	Int    int               `pb:"2"`
	Small  int32             `pb:"3"`
	Signed int64             `pb:"4,sint"`
	Hash   uint64            `pb:"5,fixed"`
	Text   string            `pb:"6"`
	Bytes  []byte            `pb:"7"`
	Hashes []uint64          `pb:"8,fixed"`
	Path   []int32           `pb:"9"`
	Texts  []string          `pb:"10"`
	Blobs  [][]byte          `pb:"11"`
	Items  []inner           `pb:"12"`
	Inner  *inner            `pb:"13"`
	Bits   [4]int64          `pb:"14"`
	Tops   *[4]int64         `pb:"15"`
	Counts map[string]int64  `pb:"16"`
	ByNum  map[int32]*outer  `pb:"17"`
	Words  map[string]string `pb:"18"`
	Value  inner             `pb:"19"`
	embedded

	cache int
}

func draw(t *rapid.T, depth int) *outer {
	o := &outer{
		Bool: rapid.Bool().Draw(t, "bool"), Int: rapid.Int().Draw(t, "int"), Small: rapid.Int32().Draw(t, "small"),
		Signed: rapid.Int64().Draw(t, "signed"), Hash: rapid.Uint64().Draw(t, "hash"), Text: rapid.String().Draw(t, "text"),
		Bytes:    rapid.SliceOfN(rapid.Byte(), 1, 5).Draw(t, "bytes"),
		Hashes:   rapid.SliceOfN(rapid.Uint64(), 1, 3).Draw(t, "hashes"),
		Path:     rapid.SliceOfN(rapid.Int32(), 1, 3).Draw(t, "path"),
		Texts:    rapid.SliceOfN(rapid.String(), 1, 3).Draw(t, "texts"),
		Blobs:    [][]byte{{1}, rapid.SliceOfN(rapid.Byte(), 1, 2).Draw(t, "blob")},
		Items:    []inner{{rapid.Int64().Draw(t, "n")}, {}},
		Bits:     [4]int64{rapid.Int64().Draw(t, "bit"), 0, 1},
		Counts:   map[string]int64{rapid.String().Draw(t, "key"): rapid.Int64().Draw(t, "count")},
		Words:    map[string]string{"a": rapid.String().Draw(t, "word")},
		Value:    inner{rapid.Int64().Draw(t, "value")},
		embedded: embedded{rapid.Int64().Draw(t, "sum")},
	}
	if rapid.Bool().Draw(t, "pointers") {
		o.Inner, o.Tops = &inner{}, &[4]int64{}
	}
	if depth > 0 {
		o.ByNum = map[int32]*outer{rapid.Int32().Draw(t, "number"): draw(t, depth-1)}
	}
	return o
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := draw(t, 2)
		data, err := Append([]byte("before"), want)
		if err != nil {
			t.Fatal(err)
		}
		rest, ok := bytes.CutPrefix(data, []byte("before"))
		if !ok {
			t.Fatal("what was there before is gone")
		}
		var got outer
		if err := Unmarshal(rest, &got, Limits{}); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, &got, cmp.AllowUnexported(outer{}, embedded{})); d != "" {
			t.Fatal(d)
		}
	})
}

// The bytes are those of the specification of protobuf.
func TestBytes(t *testing.T) {
	t.Parallel()
	for want, v := range map[string]*outer{
		"":                           {cache: 1},
		"0801":                       {Bool: true},
		"10ac02":                     {Int: 300},
		"18ffffffffffffffffff01":     {Small: -1},
		"2003":                       {Signed: -2},
		"290100000000000000":         {Hash: 1},
		"32026869":                   {Text: "hi"},
		"42080700000000000000":       {Hashes: []uint64{7}},
		"4a020102":                   {Path: []int32{1, 2}},
		"520052016b":                 {Texts: []string{"", "k"}},
		"62006202" + "0805":          {Items: []inner{{}, {5}}},
		"6a00":                       {Inner: &inner{}},
		"7202" + "0001":              {Bits: [4]int64{0, 1}},
		"7a00":                       {Tops: &[4]int64{}},
		"820105" + "0a0161" + "1001": {Counts: map[string]int64{"a": 1}},
		"8a0104" + "0803" + "1200":   {ByNum: map[int32]*outer{3: {}}},
		"a00101":                     {embedded: embedded{1}},
	} {
		data, err := Append(nil, v)
		if got := fmt.Sprintf("%x", data); err != nil || got != want {
			t.Errorf("%+v: %s, want %s, %v", v, got, want, err)
		}
	}
}

func TestUnmarshalRefuses(t *testing.T) {
	t.Parallel()
	deep := []byte{}
	for range 100 {
		deep = append([]byte{0x8a, 1, byte(len(deep) % 128)}, deep...)
	}
	for name, c := range map[string]struct{ data, reason string }{
		"cut":                    {"\x32\x02h", "field 6 at 0x0: unexpected EOF"},
		"no tag":                 {"\x00", "at 0x0"},
		"unknown":                {"\x08\x01\xf8\x01\x01", "field 31 at 0x2: the field is unknown, because a newer program wrote it"},
		"unknown, great":         {"\xf8\xff\x01\x01", "field 4095 at 0x0: the field is unknown"},
		"another type":           {"\x0d\x00\x00\x00\x00", "field 1 at 0x0: the field has an unexpected wire type"},
		"no list":                {"\x48\x01", "the field has an unexpected wire type"},
		"twice":                  {"\x08\x01\x08\x01", "occurs twice"},
		"no bool":                {"\x08\x02", "out of range"},
		"too great":              {"\x18\xff\xff\xff\xff\x7f", "out of range"},
		"no UTF-8":               {"\x32\x01\xff", "not valid UTF-8"},
		"too long an array":      {"\x72\x05\x01\x01\x01\x01\x01", "unexpected length"},
		"zeros behind an array":  {"\x72\x02\x01\x00", "unexpected length"},
		"a key that is twice":    {"\x82\x01\x00\x82\x01\x00", "a key of the map occurs twice"},
		"an entry's other field": {"\x82\x01\x02\x18\x01", "field 16.3 at 0x0"},
		"inside":                 {"\x6a\x02\x10\x01", "field 13.2 at 0x0: the field is unknown"},
	} {
		err := Unmarshal([]byte(c.data), new(outer), Limits{})
		if err == nil || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%s: %v, want %q", name, err, c.reason)
		}
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	many := bytes.Repeat([]byte{0x62, 0}, 1000)
	if err := Unmarshal(many, new(outer), Limits{Memory: 4000}); !errors.Is(err, errMemory) {
		t.Errorf("1,000 elements: %v", err)
	}
	if err := Unmarshal(many, new(outer), Limits{Memory: 40_000}); err != nil {
		t.Error(err)
	}
	nested := &outer{}
	for range 9 {
		nested = &outer{ByNum: map[int32]*outer{1: nested}}
	}
	data, err := Append(nil, nested)
	if err != nil {
		t.Fatal(err)
	}
	if err := Unmarshal(data, new(outer), Limits{Depth: 9}); !errors.Is(err, errDepth) {
		t.Errorf("10 levels: %v", err)
	}
	if err := Unmarshal(data, new(outer), Limits{Depth: 10}); err != nil {
		t.Error(err)
	}
}

func TestTypes(t *testing.T) {
	t.Parallel()
	for name, v := range map[string]any{
		"no pointer":    outer{},
		"a nil pointer": (*outer)(nil),
		"a float": &struct {
			F float64 `pb:"1"`
		}{math.Pi},
		"no number": &struct {
			N int `pb:"x"`
		}{},
		"a great number": &struct {
			N int `pb:"256"`
		}{},
		"an encoding": &struct {
			N int `pb:"1,other"`
		}{},
		"a number twice": &struct {
			A, B int `pb:"1"`
		}{},
		"a key of a map": &struct {
			M map[bool]int64 `pb:"1"`
		}{},
		"a list of lists": &struct {
			L [][]int32 `pb:"1"`
		}{},
	} {
		if _, err := Append(nil, v); err == nil || !strings.HasPrefix(err.Error(), "protostruct: ") {
			t.Errorf("%s: %v", name, err)
		}
		if err := Unmarshal(nil, v, Limits{}); err == nil {
			t.Errorf("%s is read", name)
		}
	}
}

// FuzzUnmarshal: no bytes make reading panic, and what is read is written and read alike.
func FuzzUnmarshal(f *testing.F) {
	for _, v := range []*outer{{Texts: []string{"", "k"}, Bits: [4]int64{1}}, {ByNum: map[int32]*outer{3: {Inner: &inner{1}}}}} {
		data, err := Append(nil, v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var v, again outer
		if Unmarshal(data, &v, Limits{Memory: 1 << 20}) != nil {
			return
		}
		first, err := Append(nil, &v)
		if err != nil {
			t.Fatal(err)
		}
		if err := Unmarshal(first, &again, Limits{}); err != nil {
			t.Fatalf("%v of %x", err, first)
		}
		if second, _ := Append(nil, &again); !bytes.Equal(first, second) {
			t.Fatalf("%x, then %x", first, second)
		}
	})
}
