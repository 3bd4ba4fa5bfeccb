// Package schematext prints for people what the packages below schema/ return: how far
// definitions explain captures, what changed between versions, what fits a message,
// and definitions themselves.
//
// It prints listings of definitions and what was extracted or inferred, the report of
// a check as tables or as a page of HTML (checkpage), changes between versions as a
// changelog, updates as a diff, the alignment of fields with JSON names, the types
// that match a message, and the progress of an extraction.
package schematext

import (
	"fmt"
	"strconv"
	"strings"
)

// firstFrames lists the first three addresses, separated by spaces.
func firstFrames(addresses []string) string {
	if len(addresses) > 3 {
		return strings.Join(addresses[:3], " ") + " …"
	}
	return strings.Join(addresses, " ")
}

// firstNumbers lists the first twelve field numbers, separated by commas; "none" for an empty list.
func firstNumbers(list []int32) string {
	const most = 12
	if len(list) == 0 {
		return "none"
	}
	words := make([]string, min(len(list), most))
	for i := range words {
		words[i] = strconv.Itoa(int(list[i]))
	}
	if len(list) > most {
		words = append(words, "…")
	}
	what := "number "
	if len(list) > 1 {
		what = "numbers "
	}
	return what + strings.Join(words, ", ")
}

// percent formats part/whole as a percentage. It is "100 %" only if both are equal, and "-" if whole is
// 0.
func percent(part, whole int64) string {
	switch {
	case whole == 0:
		return "-"
	case part == whole:
		return "100 %"
	}
	return fmt.Sprintf("%.1f %%", min(99.9, 100*float64(part)/float64(whole)))
}

// fieldLabel formats a field's number and name; either may be unknown (0 or "").
func fieldLabel(number int32, name string) string {
	switch {
	case number == 0:
		return name
	case name == "":
		return strconv.Itoa(int(number))
	}
	return fmt.Sprintf("%d %s", number, name)
}
