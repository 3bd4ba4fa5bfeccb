package probe

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Numbers are ranges of field numbers. After Options.Complete, they are sorted and do not overlap.
type Numbers []Range

// A Range is a range of field numbers; both ends are included.
type Range struct {
	// First is the lowest field number of the range.
	First int32 `json:"first"`
	// Last is the highest field number of the range.
	Last int32 `json:"last"`
}

const (
	defaultLast = 1100
	maxNumber   = 1<<29 - 1

	// Numbers from firstReserved to lastReserved are reserved for implementations of protobuf; no
	// field has them.
	firstReserved = 19_000
	lastReserved  = 19_999

	// maxNumbers is the number of field numbers that one run can probe.
	maxNumbers = 100_000
)

// Below returns the highest number in the ranges that is at most n; 0 if there is none.
func (r Numbers) Below(n int32) int32 {
	if n >= firstReserved && n <= lastReserved {
		n = firstReserved - 1
	}
	for i := len(r) - 1; i >= 0; i-- {
		if m := min(n, r[i].Last); m >= r[i].First {
			if m >= firstReserved && m <= lastReserved {
				return r.Below(firstReserved - 1)
			}
			return m
		}
	}
	return 0
}

// Count returns how many numbers the ranges contain.
func (r Numbers) Count() (n int32) {
	for _, part := range r {
		n += part.Last - part.First + 1
	}
	return n
}

// String formats the ranges as on the command line, such as 1-10,12.
func (r Numbers) String() string {
	var parts []string
	for _, part := range r {
		if part.First == part.Last {
			parts = append(parts, strconv.Itoa(int(part.First)))
			continue
		}
		parts = append(parts, fmt.Sprintf("%d-%d", part.First, part.Last))
	}
	return strings.Join(parts, ",")
}

// check sorts the ranges and validates them.
//
// Errors: numbers that no field can have, overlapping ranges, or too many numbers.
func (r Numbers) check() error {
	slices.SortFunc(r, func(a, b Range) int { return cmp.Compare(a.First, b.First) })
	count := int64(0)
	for i, part := range r {
		switch {
		case part.First < 1 || part.Last < part.First || part.Last > maxNumber:
			return fmt.Errorf("probe: field numbers %d to %d: the numbers must be from 1 to %d", part.First, part.Last, maxNumber)
		case i > 0 && part.First <= r[i-1].Last:
			return fmt.Errorf("probe: field numbers %d to %d: the number %d is given twice", part.First, part.Last, part.First)
		}
		if count += int64(part.Last-part.First) + 1; count > maxNumbers {
			return fmt.Errorf("probe: %d field numbers are too many: at most %d can be probed at once", count, maxNumbers)
		}
	}
	return nil
}

// contain reports whether a field number is in one of the ranges.
func (r Numbers) contain(number int32) bool {
	return slices.ContainsFunc(r, func(one Range) bool { return one.First <= number && number <= one.Last })
}
