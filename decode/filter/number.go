package filter

import (
	"cmp"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
)

// A comparison is an operator between a key and a value, such as "<".
type comparison string

// comparisons are all operators of comparison. Longer ones precede their prefixes, so that the first match is
// right.
var comparisons = [...]comparison{"!=", "<=", ">=", "=", "<", ">"}

// holds reports whether the comparison is true. order is the result of cmp.Compare for the two values.
func (c comparison) holds(order int) bool {
	switch c {
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	case ">=":
		return order >= 0
	}
	return order == 0
}

// A number is a numeric value in a filter: integer if exact is true, and fraction otherwise. Times and durations
// are in nanoseconds.
type number struct {
	// exact means that the value is in integer. Otherwise it is in fraction.
	exact bool

	// integer is the value, if exact is true. Times and durations are in nanoseconds.
	integer int64

	// fraction is the value, if exact is false. Times and durations are in nanoseconds.
	fraction float64
}

// exactly returns the number for an integer without rounding.
func exactly(n int64) number { return number{exact: true, integer: n, fraction: float64(n)} }

// parseNumber parses the text of a field's value as a number; the result is false if it is not one.
func parseNumber(text string) (number, bool) {
	// Integers are compared exactly.
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return exactly(n), true
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) || math.IsNaN(f) || strings.HasPrefix(text, "0x") {
		return number{}, false
	}
	return number{fraction: f}, true
}

// compare returns -1, 0 or +1 as n is less than, equal to or greater than m. Two exact numbers are compared as
// integers, because a float64 has only 53 bits.
func (n number) compare(m number) int {
	if n.exact && m.exact {
		return cmp.Compare(n.integer, m.integer)
	}
	return cmp.Compare(n.fraction, m.fraction)
}

// sizeUnits are the units that may follow a number of bytes, from B to TB.
var sizeUnits = []struct {
	name  string
	bytes float64
}{
	{"B", 1},
	{"K", 1e3},
	{"KB", 1e3},
	{"kB", 1e3},
	{"M", 1e6},
	{"MB", 1e6},
	{"G", 1e9},
	{"GB", 1e9},
	{"T", 1e12},
	{"TB", 1e12},
	{"KiB", 1 << 10},
	{"MiB", 1 << 20},
	{"GiB", 1 << 30},
	{"TiB", 1 << 40},
}

// durationUnits are the units that may follow the number of a duration.
var durationUnits = []struct {
	name string
	unit time.Duration
}{
	{"ns", time.Nanosecond}, {"us", time.Microsecond}, {"ms", time.Millisecond}, {"s", time.Second}, {"m", time.Minute}, {"h", time.Hour},
}

// splitUnit splits a text such as "10MB" into the number and its unit.
func splitUnit(text string) (value, unit string) {
	end := strings.LastIndexAny(text, "0123456789.") + 1
	return text[:end], text[end:]
}

// parseDecimal parses an integer or a decimal fraction.
func parseDecimal(text string) (number, bool) {
	digits := strings.TrimPrefix(text, "-")
	whole, fraction, dot := strings.Cut(digits, ".")
	if !areDigits(whole) || dot && !areDigits(fraction) {
		return number{}, false
	}
	return parseNumber(text)
}

// areDigits reports whether s consists of decimal digits only.
func areDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// parsePlain parses the value of a key that is a number without a unit.
func parsePlain(key, text string) (number, error) {
	if n, ok := parseDecimal(text); ok {
		return n, nil
	}
	return number{}, errorf("%s must be a number, such as 7, not %s", key, quoted(text))
}

// parseSize parses the value of a key that is a number of bytes, such as 10KB.
func parseSize(key, text string) (number, error) {
	value, unit := splitUnit(text)
	if n, ok := parseDecimal(value); ok {
		if unit == "" {
			return n, nil
		}
		for _, u := range sizeUnits {
			if u.name == unit {
				return number{fraction: n.fraction * u.bytes}, nil
			}
		}
	}
	return number{}, errorf("%s must be a number of bytes, such as 4096, 64KB or 64KiB, not %s", key, quoted(text))
}

// parseDuration parses a number with a unit of time.
func parseDuration(key, text string) (number, error) {
	value, unit := splitUnit(text)
	n, ok := parseDecimal(value)
	if ok && unit == "" {
		return number{}, errorf("%s needs a unit, such as %ss or %sms", key, value, value)
	}
	for _, u := range durationUnits {
		if ok && u.name == unit {
			return number{fraction: n.fraction * float64(u.unit)}, nil
		}
	}
	return number{}, errorf("%s must be a duration, such as 2s or 150ms, not %s", key, quoted(text))
}

// timeLayouts are the formats of times. Times without a zone are local.
var timeLayouts = []string{"2006-01-02", "2006-01-02T15:04", "2006-01-02T15:04:05"}

// parseTime parses a time, or a duration with a minus sign that is subtracted from now.
func parseTime(key, text string, now time.Time) (number, error) {
	if ago, ok := strings.CutPrefix(text, "-"); ok {
		if d, err := parseDuration(key, ago); err == nil {
			return exactly(now.UnixNano() - int64(d.fraction)), nil
		}
	}
	// A time without a zone is local.
	for _, layout := range timeLayouts {
		for _, zone := range []string{"", "Z07:00"} {
			t, err := time.ParseInLocation(layout+zone, text, now.Location())
			if err == nil && t.Year() > 1900 && t.Year() < 2200 {
				return exactly(t.UnixNano()), nil
			}
		}
	}
	return number{}, errorf("%s must be a time, such as 2026-11-22T10:00, or a time ago, such as -10m, not %s", key, quoted(text))
}
