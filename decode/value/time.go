package value

import (
	"math"
	"time"
)

// TimeUnits are the units of Unix times, from seconds to nanoseconds.
var TimeUnits = [...]string{"timestamp-s", "timestamp-ms", "timestamp-us", "timestamp-ns"}

// TimeUnit returns the unit, of TimeUnits, in which v is a Unix time between 2001 and 2065. It returns "" if v is not
// such a time. The ranges of the units do not overlap.
func TimeUnit(v uint64) string {
	from, to := uint64(1e9), uint64(3e9)
	for _, unit := range TimeUnits {
		if v >= from && v < to {
			return unit
		}
		from, to = from*1e3, to*1e3
	}
	return ""
}

// TimeNote formats the time that v is in the given unit of TimeUnit, or returns "" if v is too large.
func TimeNote(v uint64, unit string) string {
	if v > math.MaxInt64 {
		return ""
	}
	var at time.Time
	switch s := int64(v); unit {
	case "timestamp-ms":
		at = time.UnixMilli(s)
	case "timestamp-us":
		at = time.UnixMicro(s)
	case "timestamp-ns":
		at = time.Unix(0, s)
	default:
		// time.Time cannot format later years.
		if s > math.MaxInt32*100 {
			return ""
		}
		at = time.Unix(s, 0)
	}
	return FormatTime(at)
}

// FormatTime formats t in RFC 3339, in UTC.
func FormatTime(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
