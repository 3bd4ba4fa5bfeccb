package wire

import (
	"math"
	"strconv"
)

// A weight is the odds of one type of a scalar.
type weight struct {
	typ   string
	odds  float64
	value any
	why   string
}

func weigh(kind Kind, ws []weight) []Reading {
	out := make([]Reading, 0, len(ws))
	for _, w := range ws {
		if w.odds > 0 {
			out = append(out, Reading{Kind: kind, Type: w.typ, P: w.odds, Value: w.value, Why: []Feature{{w.why, math.Log2(w.odds)}}})
		}
	}
	return normalize(out)
}

// varintReadings weighs the types of a varint of width bytes. One value tells
// little; evidence over many settles it.
func varintReadings(v uint64, width int) []Reading {
	signed, zigzag := int64(v), int64(v>>1)^-int64(v&1)
	ws := []weight{
		{"int64", 10, signed, "most varints are int32 or int64"},
		{"uint64", 3, v, "unsigned is less common"},
		{"sint64", 0.5, zigzag, "zigzag is rare"},
	}
	switch unit := timestampUnit(v); {
	case signed < 0:
		// A negative number takes ten bytes unless it is zigzag, and then only
		// an enormous one does.
		ws[1].odds, ws[2].odds = 0.3, 0.01
		if -signed > 1<<40 {
			ws[0].odds, ws[1].odds = 1, 1
		}
	case v <= 1 && width == 1:
		ws = append(ws, weight{"bool", 12, v == 1, "0 or 1"}, weight{"enum", 4, signed, "small"})
	case v <= 64:
		ws = append(ws, weight{"enum", 5, signed, "small"})
	case v <= 1000:
		ws = append(ws, weight{"enum", 0.5, signed, "not large"})
	case unit != "":
		odds := 60.0
		if unit == "timestamp-s" {
			odds = 15 // other numbers have this size, too
		}
		ws = append(ws, weight{unit, odds, signed, "a time between 2001 and 2065"})
	}
	return weigh(KindVarint, ws)
}

// timestampUnit names the unit in which v is a time between 2001 and 2065, or "".
func timestampUnit(v uint64) string {
	const from, to = 1e9, 3e9
	for _, u := range [...]struct {
		name string
		per  uint64
	}{{"timestamp-s", 1}, {"timestamp-ms", 1e3}, {"timestamp-us", 1e6}, {"timestamp-ns", 1e9}} {
		if v >= from*u.per && v < to*u.per {
			return u.name
		}
	}
	return ""
}

func fixed32Readings(v uint32) []Reading {
	f := math.Float32frombits(v)
	ws := []weight{
		{"float", 1, f, "its magnitude as a float is odd"},
		{"fixed32", 2, uint64(v), "a number"},
		{"sfixed32", 0.5, int64(int32(v)), "signed is less common"},
	}
	switch {
	case v == 0:
		ws[0].odds = 4
	case plausibleFloat(float64(f)):
		ws[0].odds, ws[0].why = 20, "its magnitude as a float is usual"
		if len(strconv.FormatFloat(math.Abs(float64(f)), 'g', -1, 32)) <= 6 {
			ws[0].odds, ws[0].why = 60, "it is short as a decimal fraction"
		}
	case int32(v) < 0 && int32(v) > -1<<20:
		ws[2].odds, ws[2].why = 20, "close below zero"
	case v < 1<<20:
		ws[1].odds, ws[1].why = 30, "small as an integer"
	}
	if timestampUnit(uint64(v)) != "" {
		ws = append(ws, weight{"timestamp-s", 6, int64(v), "a time between 2001 and 2065"})
	}
	return weigh(KindFixed32, ws)
}

func fixed64Readings(v uint64) []Reading {
	f := math.Float64frombits(v)
	ws := []weight{
		{"double", 1, f, "its magnitude as a double is odd"},
		{"fixed64", 4, v, "a number"},
		{"sfixed64", 1, int64(v), "signed is less common"},
	}
	switch {
	case v == 0:
		ws[0].odds = 8
	case plausibleFloat(f):
		ws[0].odds, ws[0].why = 60, "its magnitude as a double is usual"
		if len(strconv.FormatFloat(math.Abs(f), 'g', -1, 64)) <= 9 {
			ws[0].odds, ws[0].why = 400, "it is short as a decimal fraction"
		}
	case int64(v) < 0 && int64(v) > -1<<40:
		ws[0].odds, ws[2].odds, ws[2].why = 0.05, 30, "close below zero"
	case v < 1<<40:
		ws[0].odds, ws[1].odds, ws[1].why = 0.05, 30, "small as an integer"
	}
	if unit := timestampUnit(v); unit != "" && unit != "timestamp-s" {
		ws[0].odds = 0.05
		ws = append(ws, weight{unit, 60, int64(v), "a time between 2001 and 2065"})
	}
	return weigh(KindFixed64, ws)
}
