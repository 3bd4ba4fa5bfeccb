package transcript

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/transcript/language"
	"unwire/decode/transcript/naming"
)

// measureAll sets the features of all streams, from which their roles are inferred.
func (c *collection) measureAll(ex *decode.Exchange, streams []*stream) {
	// texts counts the texts of each frame.
	texts := make(map[int]int)
	for _, s := range streams {
		s.measure()
		s.addNameFeatures(c.common)
		if s.class == word && s.dir == captures.Down && c.groups[s.pieces[0].group].texts > 2 {
			// The name belongs to the message and not to one of its properties.
			s.features[saysRole+assistant] = min(s.features[saysRole+assistant], max(s.namedAssistant, 0.3))
		}
		for _, p := range s.pieces {
			texts[p.frame]++
		}
	}
	findStandingValues(streams)
	findModelTitles(streams)

	// The neighbourhood of a text is its frame, or in a large frame its message.
	contexts := make(map[[2]int]*neighbourhood)
	get := func(frame, group int) *neighbourhood {
		key := [2]int{frame, group}
		x := contexts[key]
		if x == nil {
			x = &neighbourhood{first: frame}
			contexts[key] = x
		}
		return x
	}
	beside := func(p textPiece) *neighbourhood { return get(p.frame, int(p.group)) }
	around := func(p textPiece) *neighbourhood {
		if texts[p.frame] > smallFrame {
			return beside(p)
		}
		return get(p.frame, -1)
	}
	for _, s := range streams {
		for _, p := range s.pieces {
			x, y := around(p), beside(p)
			x.addNeighbour(s, p)
			if x != y {
				y.addNeighbour(s, p)
				if texts[p.frame] <= smallFrame {
					y.frame = x
				}
			}
		}
	}
	// calls has the frame in which each identifier of a call first occurred.
	calls := make(map[string]int)
	texted := c.textIDs(streams)
	firstCall := len(ex.Frames)
	for _, x := range contexts {
		if x.callLikelihood(0) == 0 || ex.Frames[x.first].Dir != captures.Down {
			continue
		}
		for _, id := range x.ids {
			if texted[id] && x.callLikelihood(0) < surelyCall {
				continue
			}
			if first, ok := calls[id]; !ok || x.first < first {
				calls[id] = x.first
			}
			firstCall = min(firstCall, x.first)
		}
		if len(x.ids) == 0 {
			firstCall = min(firstCall, x.first)
		}
	}

	// Features that depend on the neighbourhood, then those that compare texts.
	answered := slices.IndexFunc(ex.Frames, func(f decode.Frame) bool { return f.Dir == captures.Down })
	for _, s := range streams {
		s.addNeighbourFeatures(around, beside, calls)
		if s.dir == captures.Down && s.pieces[0].frame > firstCall && s.features[inCall] < 0.5 {
			s.features[afterFirstCall] = 1
		}
		if s.dir == captures.Up && answered >= 0 && s.pieces[0].frame > answered {
			s.features[later] = 1
		}
		if ex.Status >= 400 && s.dir == captures.Down {
			s.features[failed] = 1
		}
	}
	c.findReturnedHandles(streams)
	c.findAnswerJSON(ex, streams)
	findEchoes(streams)
	compare(streams, c.groups)
}

const (
	// minHandle is the minimum size in bytes of a handle: a value of the server that the client sends back.
	minHandle = 6

	// maxHandle is the maximum size in bytes of a handle.
	maxHandle = 64

	// maxHandleFrames is the maximum number of the server's frames that contain the same handle.
	maxHandleFrames = 3
)

// findReturnedHandles finds texts that the client sends together with a handle, i.e. a value without spaces that
// the server sent shortly before, in few frames. Such a text is the result of the tool call that the handle
// identifies, even if the handle does not resemble an identifier.
func (c *collection) findReturnedHandles(streams []*stream) {
	isHandle := func(text string) bool {
		return len(text) >= minHandle && len(text) <= maxHandle && strings.IndexFunc(text, unicode.IsSpace) < 0
	}
	// first is the first frame of each value.
	first := make(map[string]int)
	times := make(map[string]int)
	for _, s := range streams {
		if s.dir != captures.Down || s.kind >= delta && s.kind != separate || s.inMostFrames || s.discriminates {
			continue
		}
		for _, p := range s.pieces {
			if isHandle(p.text) {
				if at, ok := first[p.text]; !ok || p.frame < at {
					first[p.text] = p.frame
				}
				times[p.text]++
			}
		}
	}

	// Messages in which the client returned a handle.
	handed := make(map[int32]bool)
	for _, s := range streams {
		if s.dir != captures.Up || s.class != word && s.features[identifier] == 0 {
			continue
		}
		for _, p := range s.pieces {
			if at, ok := first[p.text]; ok && at < p.frame && times[p.text] <= maxHandleFrames {
				handed[p.group] = true
			}
		}
	}
	for _, s := range streams {
		f := &s.features
		if f[later] == 0 || f[afterCall] > 0 || s.class == word || f[identifier] > 0 {
			continue
		}
		n := 0
		for _, p := range s.pieces[:min(len(s.pieces), maxLooked)] {
			if handed[p.group] || handed[c.groups[p.group].parent] {
				n++
			}
		}
		f[afterCall] = float64(n) / float64(min(len(s.pieces), maxLooked))
	}
}

// namedBefore is the maximum distance, in frames of the server, between arguments and the name of their tool.
const namedBefore = 3

// findAnswerJSON finds JSON of the server that is an answer and not the arguments of a call, because no name of
// a tool is nearby. The name is next to the arguments, or, if these arrive in pieces, next to an identifier in a
// frame shortly before. If the client continues afterwards, the JSON belonged to a call.
func (c *collection) findAnswerJSON(ex *decode.Exchange, streams []*stream) {
	// named are the frames that contain the name of a tool.
	named := make(map[int]bool)
	// beside are the messages that contain one.
	beside := make(map[int32]bool)
	// within are the messages that contain such a message.
	within := make(map[int32]bool)
	// asked are the identifiers that the client sent.
	asked := make(map[string]bool)

	worded, prosed := besideProse(streams)
	for _, s := range streams {
		if s.dir == captures.Up && s.features[identifier] > 0 {
			for _, p := range s.pieces {
				asked[p.text] = true
			}
		}
		if s.dir != captures.Down || s.class != word && s.class != plain || s.inMostFrames {
			continue
		}
		for _, p := range s.pieces {
			if g := c.groups[p.group]; s.discriminates && (g.id == "" || g.texts != 2) {
				// It is the name of a kind, and not of the thing with the identifier.
				continue
			}
			if naming.IsTool(p.text) && !worded[s.path+" "+p.text] && !language.IsFinish(p.text) && roleWord(p.text) < 0 {
				beside[p.group] = true
				if id, _ := c.idOf(p.group); id != "" {
					named[p.frame] = true
				}
				if parent := c.groups[p.group].parent; parent >= 0 {
					within[parent] = true
				}
			}
		}
	}

	lastUp := -1
	for i := range ex.Frames {
		if ex.Frames[i].Dir == captures.Up && len(ex.Frames[i].Data) > 0 {
			lastUp = i
		}
	}
	for _, s := range streams {
		f := &s.features
		if s.dir != captures.Down || f[jsonText] == 0 || s.pieces[len(s.pieces)-1].frame < lastUp || f[saysRole+toolCall]+f[saysRole+toolResult]+f[afterCall] > 0 {
			continue
		}
		// A tool's name near the JSON makes it the arguments of a call.
		isNamed := func(p textPiece) bool {
			g := c.groups[p.group]
			return beside[p.group] || within[p.group] || within[g.parent] || beside[g.parent] && !prosed[s.path] || asked[g.id]
		}
		if s.hasCallID() {
			continue
		}
		if !slices.ContainsFunc(s.pieces[:min(len(s.pieces), maxLooked)], isNamed) && (len(s.seqs) == 1 || !namedNear(ex, named, s.pieces[0].frame)) {
			f[bareJSON], f[inCall] = 1, 0
		}
	}
}

// hasCallID reports whether the JSON in s has a member with the id of a call, as arguments may have and answers
// do not.
func (s *stream) hasCallID() bool {
	var text strings.Builder
	for _, p := range s.pieces[:min(len(s.pieces), maxLooked)] {
		text.WriteString(p.text)
	}
	return strings.Contains(strings.ReplaceAll(strings.ToLower(text.String()), "_", ""), `"toolcallid"`)
}

// besideProse returns as beside the server's values that occur next to natural language in a message, as "path
// value", so that they do not count as names of tools. prosed are the paths of natural language.
func besideProse(streams []*stream) (beside, prosed map[string]bool) {
	// said has the path of a text by message.
	said := make(map[int32]string)
	beside, prosed = make(map[string]bool), make(map[string]bool)
	for _, s := range streams {
		if s.dir == captures.Down && s.class == plain && s.features[languageLike] >= 0.5 && s.features[afterCall] == 0 {
			prosed[s.path] = true
			for _, p := range s.pieces {
				said[p.group] = s.path
			}
		}
	}
	for _, s := range streams {
		if s.dir != captures.Down || s.class != word {
			continue
		}
		for _, p := range s.pieces {
			if path, ok := said[p.group]; ok && path != s.path {
				beside[s.path+" "+p.text] = true
			}
		}
	}
	return beside, prosed
}

// namedNear reports whether the set named contains frame at, or one of the server's last frames before it.
func namedNear(ex *decode.Exchange, named map[int]bool, at int) bool {
	for n := 0; at >= 0 && n <= namedBefore; at-- {
		if ex.Frames[at].Dir != captures.Down {
			// Earlier calls have been answered.
			break
		}
		if named[at] {
			return true
		}
		n++
	}
	return false
}

// surelyCall is the likelihood of a call above which the values around a text are more evidence for a call than an
// identifier and a word alone.
const surelyCall = 0.9

// textIDs returns the identifiers next to the deltas of a text. They identify that text and not a call.
func (c *collection) textIDs(streams []*stream) map[string]bool {
	ids := make(map[string]bool)
	for _, s := range streams {
		f := &s.features
		if s.dir != captures.Down || s.class != plain || s.kind != delta && s.kind != growing || len(s.seqs) < 3 || f[lines] > 0.5 {
			continue
		}
		for _, p := range s.pieces[:min(len(s.pieces), maxLooked)] {
			if id := c.groups[p.group].id; id != "" {
				ids[id] = true
			}
		}
	}
	return ids
}

// findModelTitles finds short values with which the name of a model next to them begins: the names by which a
// program presents the model to its user.
func findModelTitles(streams []*stream) {
	models := make(map[int32][]string)
	for _, s := range streams {
		if s.class != model {
			continue
		}
		for _, p := range s.pieces[:min(len(s.pieces), maxClassified)] {
			models[p.group] = append(models[p.group], naming.Fold(p.text))
		}
	}
	for _, s := range streams {
		if s.class != plain && s.class != word || len(s.text) > mostShort {
			continue
		}
		name := naming.Fold(s.text)
		if slices.ContainsFunc(models[s.pieces[0].group], func(m string) bool { return name != "" && strings.HasPrefix(m, name) }) {
			s.features[modelName] = 1
		}
	}
}

// leastStanding is the minimum number of frames that contain a standing value.
const leastStanding = 5

// findStandingValues finds standing values, i.e. values that most of the server's frames repeat.
func findStandingValues(streams []*stream) {
	frames := make(map[int]bool)
	first := math.MaxInt
	for _, s := range streams {
		if s.dir != captures.Down {
			continue
		}
		for _, p := range s.pieces {
			frames[p.frame] = true
			first = min(first, p.frame)
		}
	}
	for _, s := range streams {
		s.inMostFrames = s.dir == captures.Down && s.kind == same && s.pieces[0].frame == first && len(s.seqs) >= leastStanding && len(s.seqs)*5 >= len(frames)*3
	}
}

// measure sets the features of s that depend on s alone.
func (s *stream) measure() {
	f := &s.features
	f[prior] = 1
	if s.dir == captures.Down {
		f[down] = 1
	} else {
		f[up] = 1
	}
	if s.stored {
		f[storedText] = 1
	}
	f[frames] = clamp(math.Log2(float64(len(s.seqs))) / 8)
	switch s.kind {
	case delta:
		f[deltas] = clamp(float64(len(s.pieces))/5) * s.open
	case growing:
		f[snapshots] = clamp(float64(len(s.pieces)) / 4)
	case separate:
		f[values] = 1
	case same:
		f[constant] = clamp(float64(len(s.seqs)-1) / 2)
	}

	// The form of the text.
	ends := 0
	for _, p := range s.pieces {
		if strings.HasSuffix(p.text, "\n") {
			ends++
		}
	}
	f[lines] = clamp(2*float64(ends)/float64(len(s.pieces)) - 0.8)
	f[long] = clamp(math.Log10(float64(len(s.text))) / 4)
	switch s.class {
	case uuid, hexID, randomID, token:
		f[identifier] = 1
	case number:
		f[numeric] = 1
	case url:
		f[address] = 1
	case filePath:
		f[path] = 1
	case jsonWhole:
		f[jsonText] = 1
	case jsonPart:
		f[jsonText] = 0.8
	case model:
		f[modelName] = 1
	case timestamp, version, mime, setting, header, email, tag:
		f[detail] = 1
	case word:
		f[name] = 1
	}

	// The wording of the text.
	if s.class == plain || s.class == word {
		f[languageLike] = s.likeness()
		f[prose] = f[languageLike] * f[long]
		f[instruct] = language.Instructions(s.text)
		if s.dir == captures.Down {
			s.deliberation = language.Deliberation(s.text)
			f[markdown] = language.MarkdownLike(s.text) * (1 - f[languageLike])
			f[asks] = s.asking()
			f[status] = s.reporting()
		}
	}
	if text := strings.TrimSpace(s.text); s.kind == single && len(text) <= 90 && !strings.ContainsAny(text, "\n") && !language.EndsSentence(text) {
		f[headline] = 1
	}
	if s.kind == separate && s.areHeadings() {
		f[headline] = 1
	}
	if head := strings.TrimSpace(s.text[:min(len(s.text), 40)]); strings.HasPrefix(head, "<think") || strings.HasPrefix(head, "<reason") {
		f[thinkTag] = 1
	}
}

// likeness scores, from 0 to 1, how much the text, or on average each of separate values, resembles natural
// language.
func (s *stream) likeness() float64 {
	if s.kind != separate {
		return language.Likeness(s.text)
	}
	pieces := s.pieces[:min(len(s.pieces), maxClassified)]
	sum := 0.0
	for _, p := range pieces {
		sum += language.Likeness(p.text)
	}
	return sum / float64(len(pieces))
}

// areHeadings reports whether all pieces are short lines without a final period: a list of names.
func (s *stream) areHeadings() bool {
	for _, p := range s.pieces[:min(len(s.pieces), maxClassified)] {
		text := strings.TrimSpace(p.text)
		if len(text) > 60 || strings.Contains(text, "\n") || language.EndsSentence(text) {
			return false
		}
	}
	return true
}

// judge chooses the most likely role of s and records the reasons. The model is a multinomial logistic regression
// over the features, with weights w.
func (s *stream) judge(w *Weights) {
	s.role, s.reasons = 0, nil
	var sums [len(roleOrder)]float64
	for f, v := range s.features {
		for role, x := range w.table[f] {
			sums[role] += v * x
		}
	}
	for role, sum := range sums {
		if sum > sums[s.role] {
			s.role = role
		}
	}
	s.sum = sums[s.role]
	s.score = softmax(sums, w.temperature)[s.role]
	for f, v := range s.features {
		if x := v * w.table[f][s.role]; x != 0 {
			s.reasons = append(s.reasons, Reason{featureNames[f], math.Round(x*1000) / 1000})
		}
	}
	slices.SortStableFunc(s.reasons, func(a, b Reason) int { return cmp.Compare(math.Abs(b.Weight), math.Abs(a.Weight)) })
}

// clamp limits x to the range from 0 to 1.
func clamp(x float64) float64 { return min(max(x, 0), 1) }
