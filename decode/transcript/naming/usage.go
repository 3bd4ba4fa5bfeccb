package naming

import "strings"

// usageNames lists words in the names of numbers with the kind of tokens that such a number counts. The first entry
// that matches decides.
var usageNames = [...]struct {
	// all are the words that must occur, in lower case without separators, separated by
	// spaces.
	all string

	// field is Input or another of these constants; -1 means that the number does not count tokens of these kinds.
	field int
}{
	{"total input token", Input},
	{"total prompt token", Input},
	{"total output token", Output},
	{"total completion token", Output},
	{"total generated token", Output},
	{"total cached token", Cached},
	{"total reasoning token", reasoned},
	{"total thought token", reasoned},
	{"total token", Total},
	{"cachecreation", -1},
	{"cachewrite", -1},
	{"cachemiss", -1},
	{"ephemeral", -1},
	{"tooluse", -1},
	{"audio", -1},
	{"prediction", -1},
	{"billed", -1},
	{"cost", -1},
	{"price", -1},
	{"image", -1},
	{"cache token", Cached},
	{"cached", Cached},
	{"cacheread", Cached},
	{"reasoning token", reasoned},
	{"thought token", reasoned},
	{"input token", Input},
	{"prompt token", Input},
	{"output token", Output},
	{"completion token", Output},
	{"candidates token", Output},
	{"response token", Output},
	{"prompteval", Input},
	{"evalcount", Output},
	{"tokensin", Input},
	{"tokensout", Output},
	{"inputcount", Input},
	{"outputcount", Output},
	{"predicted token", Output},
	{"evaluated token", Input},
	{"generation token", Output},
	{"generated token", Output},
}

// The kinds of tokens that a number may count: those of the prompt, of the answer, read from a cache, of thinking,
// and all.
const (
	// Input is the number of tokens of the prompt.
	Input = iota
	Output
	Cached
	reasoned
	Total

	// UsageFields is the number of these constants.
	UsageFields
)

// usage returns the kind of tokens (Input, Output, …) that a number with this name counts, or -1 if it does not
// count tokens.
func usage(name string) int {
	name = strings.ToLower(strings.ReplaceAll(name, "_", ""))
	// Rates, durations and limits also have "token" in their names.
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

// plainWords are the words of names of numbers that count tokens only inside a member such as "usage" or "tokens", with
// the kind of tokens. The words that say only that something is counted have no kind.
var plainWords = map[string]int{
	"input": Input, "prompt": Input, "in": Input,
	"output": Output, "completion": Output, "generated": Output, "predicted": Output, "out": Output,
	"cached": Cached, "cache": Cached, "reasoning": reasoned, "thinking": reasoned,
	"total": -1, "count": -1, "n": -1, "text": -1, "other": -1, "read": -1, "hit": -1, "token": -1, "used": -1,
}

// plainUsage returns the kind of tokens that the words of a name say, or -1 if one of them is another word. Words such as
// "cached" say more than "input".
func plainUsage(name string) int {
	field, total := -1, false
	parts := Parts(name)
	for w := range parts {
		if len(parts) > 1 && w == strings.ToLower(name) {
			continue
		}
		f, ok := plainWords[w]
		if !ok {
			return -1
		}
		field, total = max(field, f), total || w == "total" || w == "token"
	}
	if field < 0 && total {
		return Total
	}
	return field
}

// UsageIn is usage for a number inside a member named enclosing. Unspecific names, such as "input", count if the
// enclosing one is about tokens.
func UsageIn(enclosing, name string) int {
	outer := Fold(enclosing)
	if strings.Contains(outer, "billed") {
		return -1
	}
	if f := usage(name); f >= 0 {
		return f
	}
	if f := usage(enclosing); (f == Input || f == Output) && !strings.Contains(outer, "detail") && (name == "total" || name == "count") {
		return f
	}
	if f := plainUsage(name); f >= 0 && (strings.Contains(outer, "usage") || strings.Contains(outer, "token") || outer == "timings") {
		return f
	}
	return -1
}
