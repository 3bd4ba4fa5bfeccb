// Package tokens recognizes the numbers of tokens among numbers without names, by the sizes of the texts.
package tokens

import (
	"math"
	"slices"

	"unwire/decode/transcript/naming"
)

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

// Fit assigns the numbers of a message, of which there are at least two, to the kinds of tokens, such as naming.Input:
// kinds maps a kind to the index of its number. Input comes before output in every known API; a total is their sum. said
// and asked are the sizes in bytes of the answer and of the prompt. kinds is nil if the numbers do not fit.
func Fit(numbers []int64, said, asked float64) (kinds map[int]int) {
	if slices.Min(numbers) < 0 || slices.Max(numbers) > mostTokens {
		return nil
	}

	// Some APIs have the output first, or another number, such as that of a model, before the two: then the sizes of the
	// texts fit much better in this order.
	pairs := [][2]int{{1, 0}}
	for i := 1; len(numbers) >= leastWithModel && i+1 < len(numbers); i++ {
		pairs = append(pairs, [2]int{i, i + 1})
	}
	a, b := 0, 1
	for _, p := range pairs {
		in, out := numbers[p[0]], numbers[p[1]]
		if areTokens(in, out, said, asked) && misfit(in, out, said, asked)+surelySwapped < misfit(numbers[a], numbers[b], said, asked) {
			a, b = p[0], p[1]
		}
	}
	if !areTokens(numbers[a], numbers[b], said, asked) {
		return nil
	}

	kinds = map[int]int{naming.Input: a, naming.Output: b}
	for i, n := range numbers {
		_, total := kinds[naming.Total]
		_, cached := kinds[naming.Cached]
		switch {
		case i == a || i == b:
		case !total && n == numbers[a]+numbers[b]:
			kinds[naming.Total] = i
		case !cached && n <= numbers[a]:
			kinds[naming.Cached] = i
		}
	}
	return kinds
}

// areTokens reports whether in and out may be the numbers of tokens of the prompt and of the answer. A token has one to
// eight bytes, and out may include hidden thinking.
func areTokens(in, out int64, said, asked float64) bool {
	v := float64(out)
	return in >= leastTokens && float64(in) >= asked/10 && v >= said/10 && v <= 3*said+200
}

// misfit returns how badly in and out fit the sizes of the texts, in log odds.
func misfit(in, out int64, said, asked float64) float64 {
	return math.Abs(math.Log((said/4+1)/(float64(out)+1))) + math.Max(0, math.Log((asked/4+1)/(float64(in)+1)))
}
