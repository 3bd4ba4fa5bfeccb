package live

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"unwire/decode/jsontree"
	"unwire/replay/live/values"
)

// An editEcho finds, in the live server's messages, values that the user's edits put into the request,
// and replaces them by the captured originals. A server that repeats such values in its requests to the
// client ("questions") would otherwise seem to ask something that does not occur in the capture.
//
// Limits: it recognises copies of a changed value or of the part of it that differs, also in another
// encoding or case, and its length. Values that a server derives in another way are not recognised.
type editEcho struct {
	// pairs are the texts to be replaced, each with the captured text that replaces it.
	pairs [][2]string // new and old text

	// whole are the replacements of texts that are long enough to be replaced anywhere.
	whole values.Replacements

	// numbers are the replacements of numbers, in digits.
	numbers map[string]string

	// replacer replaces pairs; nil until it is needed.
	replacer *strings.Replacer
}

// shortestEcho is the least length in bytes of an edited part of a text that is replaced. A shorter one
// may occur in any other text by chance.
const shortestEcho = 2

// maxEchoes limits the number of pairs.
const maxEchoes = 10_000

// add compares the values of a client's message as captured (was) with those of the message that is
// sent instead (is), and adds the differences.
func (e *editEcho) add(was, is []values.Leaf) {
	for k := range is {
		v := &is[k]
		if v.IsMessage() {
			continue
		}
		old := values.LeafAt(was, v.Path)
		switch {
		case old == nil:
			e.addPair("", v.Text())
		case old.Value != v.Value && !old.IsMessage():
			e.addPair(old.Text(), v.Text())
		}
	}
}

// addPair adds an edited value, fresh, with the captured one, old, and also other forms in which a
// server may repeat it.
func (e *editEcho) addPair(old, fresh string) {
	if fresh == "" || len(e.pairs) > maxEchoes {
		return
	}
	if e.whole == nil {
		e.whole, e.numbers = values.Replacements{}, map[string]string{}
	}
	e.replacer = nil
	e.addText(old, fresh)
	if values.IsDigits(fresh) {
		e.numbers[fresh] = cmp.Or(old, "0")
	}
	if old == "" {
		return
	}
	e.addLength(len(old), len(fresh))
	e.addLength(utf8.RuneCountInString(old), utf8.RuneCountInString(fresh))
	for _, how := range values.Spellings {
		was, ok := how.Of(old)
		is, isToo := how.Of(fresh)
		// One half of an edited text is often a common word or syllable.
		if how != values.AsIs && !how.IsPart() && ok && isToo {
			e.addText(was, is)
		}
	}
	e.addText(strings.ToLower(old), strings.ToLower(fresh))
	if a, b := differing(old, fresh); len(a) >= shortestEcho && len(b) >= shortestEcho {
		e.addText(a, b)
		e.addWords(strings.Fields(a), strings.Fields(b))
	}
}

// addWords adds the words that differ between two texts, pairing them both from the left and from the
// right.
func (e *editEcho) addWords(old, fresh []string) {
	const most = 20
	n := min(len(old), len(fresh), most)
	for i := range n {
		for _, pair := range [...][2]string{{old[i], fresh[i]}, {old[len(old)-1-i], fresh[len(fresh)-1-i]}} {
			if a, b := differing(pair[0], pair[1]); len(a) >= shortestEcho && len(b) >= shortestEcho {
				e.addText(a, b)
			}
		}
	}
}

// addText adds a pair of texts, both plain and as they appear in JSON strings.
func (e *editEcho) addText(old, fresh string) {
	if old == fresh {
		return
	}
	if _, known := e.whole[fresh]; !known && len(fresh) >= values.ShortText {
		e.whole[fresh] = old
	}
	e.pairs = append(e.pairs, [2]string{fresh, old})
	if a, b := jsontree.Quote(old), jsontree.Quote(fresh); len(b) > len(fresh)+2 {
		e.pairs = append(e.pairs, [2]string{string(b[1 : len(b)-1]), string(a[1 : len(a)-1])})
	}
}

// addLength adds the lengths of an edited value and of the captured one.
func (e *editEcho) addLength(old, fresh int) {
	if _, known := e.numbers[strconv.Itoa(fresh)]; !known && old != fresh {
		e.numbers[strconv.Itoa(fresh)] = strconv.Itoa(old)
	}
}

// differing returns the parts of two texts between their common beginning and end, extended to whole
// words.
func differing(a, b string) (string, string) {
	from := 0
	for from < min(len(a), len(b)) && a[from] == b[from] {
		from++
	}
	end := 0
	for end < min(len(a), len(b))-from && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	isWord := func(c byte) bool {
		return c >= utf8.RuneSelf || strings.IndexByte(" \t\r\n\"'`.,;:!?/\\()[]{}<>=", c) < 0
	}
	for from > 0 && isWord(a[from-1]) {
		from--
	}
	for end > 0 && isWord(a[len(a)-end]) {
		end--
	}
	return a[from : len(a)-end], b[from : len(b)-end]
}

// undo returns a server's message with the values from edits replaced by the captured ones; nil if it
// contains none.
func (e *editEcho) undo(h *parsedMessage) *parsedMessage {
	if len(e.pairs) == 0 {
		return nil
	}
	if e.replacer == nil {
		// At each place the longest text wins, and what was put in is not looked at again.
		slices.SortStableFunc(e.pairs, func(a, b [2]string) int { return cmp.Compare(len(b[0]), len(a[0])) })
		list := make([]string, 0, 2*len(e.pairs))
		for _, p := range e.pairs {
			list = append(list, p[0], p[1])
		}
		e.replacer = strings.NewReplacer(list...)
	}
	out := &parsedMessage{frame: h.frame, shape: h.shape, leaves: slices.Clone(h.leaves)}
	changed := false
	for k := range out.leaves {
		changed = e.undoLeaf(&out.leaves[k]) || changed
	}
	if !changed {
		return nil
	}
	return out
}

// undoLeaf replaces edited values by the captured ones in the value v of a message.
func (e *editEcho) undoLeaf(v *values.Leaf) (changed bool) {
	if v.Number {
		old, ok := e.numbers[v.Text()]
		if ok && values.IsDigits(old) {
			v.Value = "n" + old
		}
		return ok
	}
	if v.IsMessage() || len(v.Data) == 0 || len(v.Data) > values.MaxTraced {
		return false
	}
	s := string(v.Data)
	was, ok := s, false
	if values.IsPrintable(v.Data) {
		was = e.replacer.Replace(s)
		ok = was != s
	}
	if !ok {
		was, ok = e.whole.In(s, 0)
	}
	if ok {
		v.SetText([]byte(was))
	}
	return ok
}
