package answer

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"unwire/decode/jsontree"
)

// maxCuts is the largest number of truncated values that an answer lists; further ones are only
// counted.
const maxCuts = 20

// limits are the limits to which an object is truncated.
type limits struct {
	// text is the largest size of a string in bytes.
	text int

	// items is the largest number of members or elements of a value.
	items int

	// depth is the largest number of nested levels.
	depth int
}

// unlimited are limits that no object reaches.
var unlimited = limits{1 << 30, 1 << 30, 1 << 30}

// tiers are the limits that are tried in turn, from mild to strict, until an object is small enough.
var tiers = []limits{
	{4096, 4096, 64},
	{1024, 512, 32},
	{512, 128, 16},
	{256, 64, 12},
	{128, 32, 8},
	{64, 16, 6},
	{64, 8, 4},
	{32, 4, 2},
}

// A cutter copies a JSON object in a shorter form: without unwanted members, and with long values
// truncated.
type cutter struct {
	// omit are the names of members to leave out.
	omit []string

	// address is what the object is about, for omission records.
	address string

	// limits are the limits that are being tried.
	limits limits

	// out is the copy.
	out bytes.Buffer

	// path has the names that lead to the value being copied.
	path []string

	// cuts describes the truncated values.
	cuts []Omission

	// omitted has the bytes of the members that were left out, by name.
	omitted map[string]int
}

// fit returns an object as at most budget bytes of JSON. It leaves out the unwanted members, and
// truncates strings, lists and deep values with the mildest of the tiers that suffices.
func (c *cutter) fit(object []byte, budget int) ([]byte, error) {
	root, err := jsontree.Parse(object)
	if err != nil {
		return nil, fmt.Errorf("an object of the answer cannot be encoded as JSON: %w", err)
	}
	if len(c.omit) == 0 && len(object) <= budget {
		return object, nil
	}
	for _, c.limits = range append([]limits{unlimited}, tiers...) {
		c.out.Reset()
		c.cuts, c.path = nil, nil
		clear(c.omitted)
		c.value(root)
		if c.out.Len() <= budget {
			return bytes.Clone(c.out.Bytes()), nil
		}
	}
	c.cuts = []Omission{{What: "the whole object, which is too large even if all its values are truncated; ask for a part of it", Address: c.address, Bytes: len(object)}}
	return []byte(`{"v":1}`), nil
}

// value copies a JSON value, truncating what exceeds the limits.
func (c *cutter) value(v jsontree.Value) {
	switch v.Kind() {
	case jsontree.String:
		c.text(v)
	case jsontree.Array, jsontree.Object:
		c.list(v)
	default:
		c.out.Write(v.Raw())
	}
}

// text copies a string, truncated to the limit. Truncated base64 still decodes, since limits are
// multiples of 4.
func (c *cutter) text(v jsontree.Value) {
	text := v.Text()
	if len(text) <= c.limits.text {
		c.out.Write(v.Raw())
		return
	}
	kept := text[:c.limits.text]
	for len(kept) > 0 && !utf8.ValidString(kept) {
		kept = kept[:len(kept)-1]
	}
	c.out.Write(jsontree.Quote(kept))
	c.cutAt(fmt.Sprintf("the end of a string of %d bytes, of which the answer contains the first %d", len(text), len(kept)), len(text)-len(kept))
}

// list copies a JSON array or object, truncating what exceeds the limits.
func (c *cutter) list(v jsontree.Value) {
	open, closing := byte('['), byte(']')
	if v.Kind() == jsontree.Object {
		open, closing = '{', '}'
	}

	// The closing bracket is always written, so that the result is valid JSON even if the content is
	// cut.
	c.out.WriteByte(open)
	defer c.out.WriteByte(closing)
	if len(c.path) >= c.limits.depth {
		if len(v.Raw()) > 2 {
			c.cutAt("the content of a value that is nested deeply", len(v.Raw()))
		}
		return
	}

	index, kept, rest := 0, 0, 0

	// Omitted members and items beyond the limit are only measured, for the report of what is missing.
	for item := range v.Items() {
		switch {
		case v.Kind() == jsontree.Object && slices.Contains(c.omit, item.Name()):
			c.omitted[item.Name()] += len(item.Raw())
		case kept >= c.limits.items:
			rest += len(item.Raw())
		default:
			if kept++; kept > 1 {
				c.out.WriteByte(',')
			}
			name := strconv.Itoa(index)
			if v.Kind() == jsontree.Object {
				name = item.Name()
				c.out.Write(jsontree.Quote(name))
				c.out.WriteByte(':')
			}
			c.path = append(c.path, name)
			c.value(item)
			c.path = c.path[:len(c.path)-1]
		}
		index++
	}
	if rest > 0 {
		c.cutAt(fmt.Sprintf("%d of %d items of a list", index-kept, index), rest)
	}
}

// pointerEscapes are the escapes of JSON pointers.
var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// cutAt records that size bytes of the value at the current path were left out; what describes them.
func (c *cutter) cutAt(what string, size int) {
	var pointer strings.Builder
	for _, name := range c.path {
		pointer.WriteByte('/')
		pointerEscapes.WriteString(&pointer, name) //nolint:errcheck // to memory
	}
	c.cuts = append(c.cuts, Omission{What: what, Address: c.address, Path: pointer.String(), Bytes: size})
}
