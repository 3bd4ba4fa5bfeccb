package app

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// ParseSize parses a size in bytes: 4096, 64KB or 64kB (thousands), 64KiB (units of 1024) or 1G.
func ParseSize(s string) (int64, error) {
	digits := strings.TrimRight(s, "kKMGTiB")
	n, err := strconv.ParseFloat(digits, 64)
	unit, known := sizeUnit(s[len(digits):])
	if err != nil || !known || math.IsNaN(n) || n*unit < 1 || n*unit > 1<<60 {
		return 0, fmt.Errorf("must be a size such as 4096, 64KB, 64KiB or 1G, not %q", s)
	}
	return int64(n * unit), nil
}

// sizeUnit returns the number of bytes of a unit such as "KB" or "MiB", and whether the unit exists; ""
// is one byte.
func sizeUnit(s string) (float64, bool) {
	switch s {
	case "", "B":
		return 1, true
	case "K", "KB", "kB":
		return 1e3, true
	case "M", "MB":
		return 1e6, true
	case "G", "GB":
		return 1e9, true
	case "T", "TB":
		return 1e12, true
	case "KiB":
		return 1 << 10, true
	case "MiB":
		return 1 << 20, true
	case "GiB":
		return 1 << 30, true
	case "TiB":
		return 1 << 40, true
	}
	return 0, false
}

// ParseRotate parses the value of --rotate, at which a new capture file begins: a size such as 500MB, or
// a duration such as 15m. The other result is 0.
func ParseRotate(s string) (size int64, age time.Duration, err error) {
	if age, err = time.ParseDuration(s); err == nil && age > 0 {
		return 0, age, nil
	}
	if size, err = ParseSize(s); err != nil {
		return 0, 0, fmt.Errorf("must be a size such as 500MB or a time such as 90s, 15m or 1h, not %q", s)
	}
	return size, 0, nil
}
