package probe

import (
	"fmt"
	"strconv"
	"strings"
)

// ParseNumbers parses field numbers and ranges, such as 1-1100,536870911.
//
// Errors: if a part is not a number, or a range ends before its beginning.
func ParseNumbers(s string) (Numbers, error) {
	var out Numbers
	for part := range strings.SplitSeq(s, ",") {
		low, high, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			high = low
		}
		first, err1 := strconv.ParseInt(low, 10, 32)
		last, err2 := strconv.ParseInt(high, 10, 32)
		if err1 != nil || err2 != nil || first < 1 || last < first {
			return nil, fmt.Errorf("fields must be numbers, or ranges with the smaller number first, such as 1-1100,5000, not %q", s)
		}
		out = append(out, Range{First: int32(first), Last: int32(last)})
	}
	return out, nil
}
