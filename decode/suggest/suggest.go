// Package suggest says which name a user probably meant, for error messages about a name that does not
// exist.
//
//	suggest.EnumValue(ed, "GLADD") // "; did you mean MOOD_GLAD? Its values are MOOD_UNSPECIFIED, MOOD_GLAD"
//
// Distance counts the letters in which two names differ. EnumValue and EnumInJSON are for the values of
// enums.
package suggest

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// maxNames is the largest number of names that a text lists.
const maxNames = 8

// maxProduct limits the product of the lengths of two names that Distance compares.
const maxProduct = 1 << 16

// Distance returns the number of letters that have to be inserted, removed, replaced or swapped with their
// neighbour to turn a into b (optimal string alignment). If the names are very long, it returns the length of the longer one.
func Distance(a, b string) int {
	if len(a)*len(b) > maxProduct {
		return max(len(a), len(b))
	}
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}

// EnumValue returns the end of an error message about a name that an enum does not have: the value that is
// probably meant, and the values of the enum, at most eight.
func EnumValue(ed protoreflect.EnumDescriptor, name string) string {
	var names []string
	for i := range ed.Values().Len() {
		names = append(names, string(ed.Values().Get(i).Name()))
	}

	// Users often omit the prefix that all values have.
	meant, least := "", 0
	for _, known := range names {
		d := Distance(strings.ToLower(name), strings.ToLower(known))
		if strings.HasSuffix(strings.ToLower(known), "_"+strings.ToLower(name)) {
			d = 0
		}
		if d <= max(2, (len(known)+1)/3) && (meant == "" || d < least) {
			meant, least = known, d
		}
	}
	list := strings.Join(names, ", ")
	if n := len(names) - maxNames; n > 0 {
		// The most similar ones are the most useful.
		slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(Distance(name, a), Distance(name, b)) })
		list = fmt.Sprintf("%s and %d more", strings.Join(names[:maxNames], ", "), n)
	}
	if meant != "" {
		return fmt.Sprintf("; did you mean %s? Its values are %s", meant, list)
	}
	return "; its values are " + list
}

// inJSON matches protojson's error about a value of an enum.
var inJSON = regexp.MustCompile(`invalid value for enum field ([^\s:]+):\s*"(.*)"`)

// EnumInJSON adds to an error of protojson, with which it rejected a message of the type md, the values of
// the enum, if the error is about an enum and the field's name identifies the enum. Other errors are returned
// unchanged.
func EnumInJSON(err error, md protoreflect.MessageDescriptor) error {
	m := inJSON.FindStringSubmatch(err.Error())
	if m == nil {
		return err
	}
	if ed := enumOf(md, m[1], m[2]); ed != nil {
		return fmt.Errorf("%w: the enum %s has no such value%s", err, ed.FullName(), EnumValue(ed, m[2]))
	}
	return err
}

// maxMessages limits the messages in which enumOf looks for a field.
const maxMessages = 1000

// enumOf returns the enum, without the given value, of the fields named field in JSON in md and the messages
// that it contains. It is nil if there is none, or if there are several.
func enumOf(md protoreflect.MessageDescriptor, field, value string) protoreflect.EnumDescriptor {
	var found protoreflect.EnumDescriptor
	seen := map[protoreflect.FullName]bool{md.FullName(): true}
	for queue := []protoreflect.MessageDescriptor{md}; len(queue) > 0 && len(seen) <= maxMessages; queue = queue[1:] {
		for i := range queue[0].Fields().Len() {
			fd := queue[0].Fields().Get(i)
			if m := fd.Message(); m != nil && !seen[m.FullName()] {
				seen[m.FullName()] = true
				queue = append(queue, m)
			}
			ed := fd.Enum()
			if ed == nil || fd.JSONName() != field || ed.Values().ByName(protoreflect.Name(value)) != nil {
				continue
			}
			if found != nil && found.FullName() != ed.FullName() {
				return nil
			}
			found = ed
		}
	}
	return found
}
