package transcript

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/transcript/naming"
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
		f := naming.Usage(n.name)
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

const (
	// leastTokens is the minimum number of tokens of a prompt.
	leastTokens = 4

	// surelySwapped is the minimum advantage, in log odds of the sizes, by which two numbers other than the first two,
	// in this order, must fit.
	surelySwapped = 0.5

	// leastWithModel is the minimum number of numbers of a message in which another one may precede the two.
	leastWithModel = 4

	// mostTokens is the maximum plausible number of tokens.
	mostTokens = 1 << 24
)

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
		if found, ok := fitUsage(list, said, asked); ok {
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

// fitUsage assigns the numbers of a message to the kinds of tokens. Input comes before output in every known API; a
// total is their sum. said and asked are the sizes in bytes of the answer and of the prompt. ok is false if they do
// not fit.
func fitUsage(list []*pathNumbers, said, asked float64) (out [naming.UsageFields]*pathNumbers, ok bool) {
	for _, n := range list {
		if n.value < 0 || n.value > mostTokens {
			return out, false
		}
	}

	pairs := [][2]*pathNumbers{{list[1], list[0]}}
	for i := 1; len(list) >= leastWithModel && i+1 < len(list); i++ {
		pairs = append(pairs, [2]*pathNumbers{list[i], list[i+1]})
	}
	// Some APIs have the output first, or another number, such as that of a model, before the two: then the sizes of the
	// texts fit much better in this order.
	a, b := list[0], list[1]
	for _, p := range pairs {
		if areTokens(p[0], p[1], said, asked) && misfit(p[0], p[1], said, asked)+surelySwapped < misfit(a, b, said, asked) {
			a, b = p[0], p[1]
		}
	}
	if !areTokens(a, b, said, asked) {
		return out, false
	}
	out[naming.Input], out[naming.Output] = a, b
	for _, n := range list {
		switch {
		case n == a || n == b:
		case out[naming.Total] == nil && n.value == a.value+b.value:
			out[naming.Total] = n
		case out[naming.Cached] == nil && n.value <= a.value:
			out[naming.Cached] = n
		}
	}
	return out, true
}

// areTokens reports whether in and out may be the numbers of tokens of the prompt and of the answer. A token has one to
// eight bytes, and out may include hidden thinking.
func areTokens(in, out *pathNumbers, said, asked float64) bool {
	v := float64(out.value)
	return in.value >= leastTokens && float64(in.value) >= asked/10 && v >= said/10 && v <= 3*said+200
}

// misfit returns how badly in and out fit the sizes of the texts, in log odds.
func misfit(in, out *pathNumbers, said, asked float64) float64 {
	return math.Abs(math.Log((said/4+1)/(float64(out.value)+1))) + math.Max(0, math.Log((asked/4+1)/(float64(in.value)+1)))
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
