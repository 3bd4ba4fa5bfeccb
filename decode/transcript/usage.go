package transcript

import (
	"cmp"
	"slices"
	"strings"

	"unwire/captures"
	"unwire/decode"
)

// Usage is what the exchange says of the tokens that it took.
//
// Shape: a nil number was not said. Named is whether the members' names say so;
// else it was concluded from where the numbers stand and how they fit the length
// of the texts, and may be wrong.
type Usage struct {
	Input     *int64 `json:"input,omitempty"`
	Output    *int64 `json:"output,omitempty"`
	Cached    *int64 `json:"cached,omitempty"`
	Reasoning *int64 `json:"reasoning,omitempty"`
	Total     *int64 `json:"total,omitempty"`
	Path      string `json:"path"` // of the message that holds them
	Frame     int    `json:"frame"`
	Named     bool   `json:"named"`
}

// usageNames are parts of names, with what they count. The first that fits counts.
var usageNames = [...]struct {
	all   string // words that must occur, in lower case without separators
	field int
}{
	{"total token", total},
	{"cache token", cached},
	{"cached", cached},
	{"cacheread", cached},
	{"reasoning token", reasoned},
	{"thought token", reasoned},
	{"input token", input},
	{"prompt token", input},
	{"output token", output},
	{"completion token", output},
	{"candidates token", output},
	{"prompteval", input},
	{"evalcount", output},
	{"tokensin", input},
	{"tokensout", output},
	{"inputcount", input},
	{"outputcount", output},
}

const (
	input = iota
	output
	cached
	reasoned
	total
	usageFields
)

func usageField(name string) int {
	name = strings.ToLower(strings.ReplaceAll(name, "_", ""))
	if strings.Contains(name, "persecond") || strings.Contains(name, "duration") || strings.HasPrefix(name, "max") {
		return -1
	}
	for _, u := range usageNames {
		fits := true
		for w := range strings.FieldsSeq(u.all) {
			fits = fits && strings.Contains(name, w)
		}
		if fits {
			return u.field
		}
	}
	return -1
}

// usage finds the numbers of tokens: by their names, or else, where names are not
// known, in the message of two to five numbers, and of no text, that came last.
func (c *collection) usage(ex *decode.Exchange, streams []*stream) *Usage {
	if u := c.namedUsage(ex); u != nil {
		return u
	}
	return c.likelyUsage(ex, streams)
}

func (c *collection) namedUsage(ex *decode.Exchange) *Usage {
	var out [usageFields]*numbers
	for _, n := range c.numbers {
		if n.dir != captures.Down || n.name == "" {
			continue
		}
		f := usageField(n.name)
		if f < 0 {
			continue
		}
		if old := out[f]; old == nil || n.last > old.last || n.last == old.last && strings.Count(n.path, ".") < strings.Count(old.path, ".") {
			out[f] = n
		}
	}
	if out[input] == nil && out[output] == nil {
		return nil
	}
	u := makeUsage(ex, out)
	u.Named = true
	return u
}

func makeUsage(ex *decode.Exchange, found [usageFields]*numbers) *Usage {
	u := &Usage{}
	for f, n := range found {
		if n == nil {
			continue
		}
		v := n.value
		*[...]**int64{&u.Input, &u.Output, &u.Cached, &u.Reasoning, &u.Total}[f] = &v
		if u.Path == "" || n.last > u.Frame {
			u.Path, u.Frame = enclosing(n.path), n.last
		}
	}
	u.Frame = ex.Frames[u.Frame].Seq
	return u
}

const (
	leastTokens = 4       // of a prompt
	mostTokens  = 1 << 24 // of anything
)

// likelyUsage reads a message of numbers as usage if one of them fits the length
// of what was answered and another is not less than the prompt can have been.
func (c *collection) likelyUsage(ex *decode.Exchange, streams []*stream) *Usage {
	said, asked, end := 0.0, 0.0, 0
	for _, s := range streams {
		switch s.role {
		case assistant, thinking:
			said += float64(len(s.text))
			end = max(end, s.pieces[0].frame)
		case user:
			asked += float64(len(s.text))
		}
	}
	if said == 0 {
		return nil
	}
	groups := make(map[int32][]*numbers)
	for _, n := range c.numbers {
		if n.dir == captures.Down && n.last >= end && n.group >= 0 && c.groups[n.group].texts == 0 {
			groups[n.group] = append(groups[n.group], n)
		}
	}
	order := make([]int32, 0, len(groups))
	for g := range groups {
		order = append(order, g)
	}
	// The last message first.
	slices.SortFunc(order, func(a, b int32) int { return cmp.Compare(b, a) })
	for _, g := range order {
		list := groups[g]
		if len(list) < 2 || len(list) > 5 {
			continue
		}
		slices.SortStableFunc(list, func(a, b *numbers) int { return comparePaths(a.path, b.path) })
		if found, ok := fitUsage(list, said, asked); ok {
			return makeUsage(ex, found)
		}
	}
	return nil
}

// fitUsage says which of the numbers of a message is which. Input comes before
// output in every API that is known; a total is their sum.
func fitUsage(list []*numbers, said, asked float64) (out [usageFields]*numbers, ok bool) {
	for _, n := range list {
		if n.value < 0 || n.value > mostTokens {
			return out, false
		}
	}
	// A token is one to eight bytes, and thinking may be hidden.
	fits := func(n *numbers) bool {
		v := float64(n.value)
		return v >= said/10 && v <= 3*said+200
	}
	a, b := list[0], list[1]
	if a.value < leastTokens || float64(a.value) < asked/10 || !fits(b) {
		return out, false
	}
	out[input], out[output] = a, b
	for _, n := range list[2:] {
		switch {
		case out[total] == nil && n.value == a.value+b.value:
			out[total] = n
		case out[cached] == nil && n.value <= a.value:
			out[cached] = n
		}
	}
	return out, true
}

// comparePaths orders field numbers by their value.
func comparePaths(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}
