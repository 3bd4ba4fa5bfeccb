package transcript

import (
	"cmp"
	"slices"
	"strings"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/transcript/naming"
	"unwire/decode/transcript/tokens"
)

// Usage has the numbers of tokens that the server reported. A number that was not sent is nil.
type Usage struct {
	// Input is the number of tokens of the prompt.
	Input *int64 `json:"input,omitempty"`

	// Output is the number of tokens of the answer.
	Output *int64 `json:"output,omitempty"`

	// Cached is the part of Input that the server read from a cache.
	Cached *int64 `json:"cached,omitempty"`

	// Reasoning is the number of tokens of hidden or visible thinking.
	Reasoning *int64 `json:"reasoning,omitempty"`

	// Total is usually the sum of Input and Output.
	Total *int64 `json:"total,omitempty"`

	// Path is the path of the message that contains the numbers.
	Path string `json:"path"`

	// Frame is the sequence number of the frame in its direction.
	Frame int `json:"frame"`

	// Named means that the members' names identify the numbers. Otherwise they were inferred from their order and
	// from the length of the texts, and may be wrong.
	Named bool `json:"named"`
}

// usage returns the token counts of the exchange, found by their names or, without names, by a message that has two
// to five numbers and no text. It returns nil if there are none.
func (c *collection) usage(ex *decode.Exchange, streams []*stream) *Usage {
	if u := c.namedUsage(ex); u != nil {
		return u
	}
	return c.likelyUsage(ex, streams)
}

// namedUsage finds the numbers of tokens by the names of their members, or returns nil.
func (c *collection) namedUsage(ex *decode.Exchange) *Usage {
	var out [naming.UsageFields]*pathNumbers
	for _, n := range c.numbers {
		if n.dir != captures.Down || n.name == "" {
			continue
		}
		outer := naming.Enclosing(n.path)
		f := naming.UsageIn(outer[strings.LastIndexByte(outer, '.')+1:], n.name)
		if f < 0 {
			continue
		}
		// The last number counts, and of several in one frame the outermost.
		if old := out[f]; old == nil || n.last > old.last || n.last == old.last && strings.Count(n.path, ".") < strings.Count(old.path, ".") {
			out[f] = n
		}
	}
	if out[naming.Input] == nil && out[naming.Output] == nil {
		return nil
	}
	u := makeUsage(ex, out)
	u.Named = true
	return u
}

// makeUsage returns a Usage with the last value of each of the numbers found.
func makeUsage(ex *decode.Exchange, found [naming.UsageFields]*pathNumbers) *Usage {
	u := &Usage{}
	for f, n := range found {
		if n == nil {
			continue
		}
		v := n.value
		*[...]**int64{&u.Input, &u.Output, &u.Cached, &u.Reasoning, &u.Total}[f] = &v
		if u.Path == "" || n.last > u.Frame {
			u.Path, u.Frame = naming.Enclosing(n.path), n.last
		}
	}
	u.Frame = ex.Frames[u.Frame].Seq
	return u
}

// likelyUsage returns the token counts from a message of numbers without names in which one number fits the length
// of the answer and another is large enough for the prompt; nil if there is none.
func (c *collection) likelyUsage(ex *decode.Exchange, streams []*stream) *Usage {
	said, asked, end := measureTexts(streams)
	if said == 0 {
		return nil
	}

	// Find messages that contain only numbers, and at most one word such as an identifier, and were sent after the answer
	// began.
	prose := make(map[int32]bool)
	for _, s := range streams {
		for _, p := range s.pieces {
			prose[p.group] = prose[p.group] || s.class == plain && s.features[languageLike] >= 0.2
		}
	}
	groups := make(map[int32][]*pathNumbers)
	for _, n := range c.numbers {
		if n.dir == captures.Down && n.last >= end && n.group >= 0 && c.groups[n.group].texts <= 1 && !prose[n.group] {
			groups[n.group] = append(groups[n.group], n)
		}
	}
	order := make([]int32, 0, len(groups))
	for g := range groups {
		order = append(order, g)
	}
	// The last message is the most likely one.
	slices.SortFunc(order, func(a, b int32) int { return cmp.Compare(b, a) })
	for _, g := range order {
		list := groups[g]
		if len(list) < 2 || len(list) > 5 {
			continue
		}
		slices.SortStableFunc(list, func(a, b *pathNumbers) int { return comparePaths(a.path, b.path) })
		values := make([]int64, len(list))
		for i, n := range list {
			values[i] = n.value
		}
		if kinds := tokens.Fit(values, said, asked); kinds != nil {
			var found [naming.UsageFields]*pathNumbers
			for kind, i := range kinds {
				found[kind] = list[i]
			}
			return makeUsage(ex, found)
		}
	}
	return nil
}

// measureTexts returns the sizes in bytes of the answer and of the prompt, and the frame in which the last text of the
// answer begins.
func measureTexts(streams []*stream) (said, asked float64, end int) {
	for _, s := range streams {
		switch s.role {
		case assistant, thinking:
			said += float64(len(s.text))
			end = max(end, s.pieces[0].frame)
		case toolCall:
			if s.dir == captures.Down && s.features[identifier] == 0 {
				said += float64(len(s.text))
				end = max(end, s.pieces[0].frame)
			}
		case user:
			asked += float64(len(s.text))
		}
	}
	return said, asked, end
}

// countsTexts reports whether the number of tokens of the answer in u fits the texts alone, without hidden thinking. Only
// then is u evidence for a conversation: other numbers, such as prices, are as large as hidden thinking can be.
func (u *Usage) countsTexts(streams []*stream) bool {
	// extra are tokens for marks around the answer.
	const extra = 16
	said, _, _ := measureTexts(streams)
	return u != nil && u.Output != nil && float64(*u.Output) <= said+extra
}

// comparePaths orders paths by length, then as text, which orders field numbers by value.
func comparePaths(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

// pathNumbers summarizes the numbers that were sent at one path in one direction.
type pathNumbers struct {
	// dir is the direction in which the numbers were sent.
	dir captures.Direction

	// path is the path of the numbers: field numbers or names of JSON members joined by dots, without indexes. name is
	// its last name, or "" for field numbers.
	path, name string

	// count is the number of values that were sent.
	count int

	// first and last are the indexes of the first and last frame with a value.
	first, last int

	// group is the index of the message with the last value.
	group int32

	// value is the last value.
	value int64

	// most is the greatest value.
	most int64

	// falls means that a value was less than the previous one.
	falls bool
}

// addValue records the next value, which is in frame number frame and in message group.
func (n *pathNumbers) addValue(frame int, group int32, value int64) {
	if n.count > 0 && value < n.value {
		n.falls = true
	}
	n.count++
	n.last, n.group, n.value, n.most = frame, group, value, max(n.most, value)
}
