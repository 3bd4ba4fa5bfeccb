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

// An editEcho undoes the edits of a request in what the live server sends: a server
// that repeats what it was sent asks other questions than in the capture, and the
// difference follows from the edit.
//
// Limits: copies of a changed value, of the part of it that differs, in another spelling
// or case, and its length. What a server derives otherwise is not recognised.
type editEcho struct {
	pairs   [][2]string // new and old text
	whole   values.Replacements
	numbers map[string]string

	replacer *strings.Replacer // of pairs; nil until it is needed
}

// shortestEcho is the length in bytes below which the part of a text that an edit
// changed may be in any other text by chance.
const shortestEcho = 2

// maxEchoes bounds the pairs.
const maxEchoes = 10_000

// add compares a message of the client as captured with what is sent instead.
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

// addPair adds a value that the user edited, and other forms in which a server may repeat it.
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
		if how != values.AsIs && ok && isToo {
			e.addText(was, is)
		}
	}
	e.addText(strings.ToLower(old), strings.ToLower(fresh))
	if a, b := differing(old, fresh); len(a) >= shortestEcho && len(b) >= shortestEcho {
		e.addText(a, b)
		e.addWords(strings.Fields(a), strings.Fields(b))
	}
}

// addWords adds the words that changed, paired from the left and from the right.
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

// addText adds a pair of texts, both plain and as JSON strings.
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

func (e *editEcho) addLength(old, fresh int) {
	if _, known := e.numbers[strconv.Itoa(fresh)]; !known && old != fresh {
		e.numbers[strconv.Itoa(fresh)] = strconv.Itoa(old)
	}
}

// differing returns the differing parts of two texts, extended to whole words.
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

// undo replaces the edited values that a server message repeats by the original ones. It returns nil if
// the message repeats none.
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

// undoLeaf replaces edited values by the original ones in one value of a message.
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
