package transcript

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"unwire/captures"
)

// A Tool is a call of a tool with what came of it.
//
// Shape: Name is "" where the stream has none beside the arguments: then the
// Path of the arguments tells tools apart. Arguments is the text of the one
// field that holds them, or a line `path: value` for each of several. Paired says
// what joins the result to the call: "id", "order", or "" where there is none.
type Tool struct {
	ID           string `json:"id,omitempty"`
	Name         string `json:"name,omitempty"`
	Path         string `json:"path"`
	Arguments    string `json:"arguments"`
	Frames       []int  `json:"frames"`
	Result       string `json:"result,omitempty"`
	ResultDir    string `json:"result_dir,omitempty"`
	ResultPath   string `json:"result_path,omitempty"`
	ResultFrames []int  `json:"result_frames,omitempty"`
	Paired       string `json:"paired,omitempty"`

	frame, last int // of the exchange: the first and last of the arguments
	dir         captures.Direction
	group       int32
	values      []value
}

// A value is one argument or one part of a result.
type value struct {
	s      *stream
	pieces []piece
}

const (
	maxTools          = 1000    // of an exchange
	maxResultSearched = 1 << 12 // bytes of a result in which another is looked for
)

func (t *Tool) turn(number int) Turn {
	return Turn{Role: roleToolCall, Dir: t.dir.String(), Path: t.Path, Frames: t.Frames, Tool: number, frame: t.frame}
}

// toolCalls are the calls in the order in which they were made, with their results.
func (c *collection) toolCalls(streams []*stream) []Tool {
	shared := c.sharedIDs(streams)
	calls := c.callParts(streams, toolCall, shared)
	results := c.callParts(streams, toolResult, shared)
	words := c.toolNames(streams)
	for i := range calls {
		calls[i].Name = words.nameFor(c, &calls[i])
		calls[i].finish()
	}
	for i := range results {
		results[i].finish()
	}
	taken := make([]bool, len(results))
	join := func(t *Tool, i int, how string) {
		r := &results[i]
		taken[i] = true
		t.Paired, t.Result, t.ResultDir, t.ResultPath, t.ResultFrames = how, r.Arguments, r.dir.String(), r.Path, r.Frames
	}
	byID := make(map[string]int)
	for k := range results {
		if _, ok := byID[results[k].ID]; !ok {
			byID[results[k].ID] = k
		}
	}
	for i := range calls {
		if k, ok := byID[calls[i].ID]; ok && calls[i].ID != "" && !taken[k] {
			join(&calls[i], k, "id")
		}
	}
	known := make(map[string]bool)
	for i := range calls {
		known[calls[i].ID] = true
	}
	first := c.firstServerFrame(streams)
	for k := range results {
		r := &results[k]
		if taken[k] || r.frame < first {
			continue // of a turn before, sent with the question
		}
		// The first call that is open: calls that are made together are answered
		// in their order.
		best := -1
		for i := range calls {
			if calls[i].Paired == "" && calls[i].frame <= r.frame && (calls[i].ID == "" || !known[r.ID]) {
				best = i
				break
			}
		}
		switch {
		case best >= 0:
			join(&calls[best], k, "order")
		case slices.ContainsFunc(calls, func(t Tool) bool { return sameResult(t.Result, r.Arguments) }):
			// the client's and the server's account of one result
		case len(calls) < maxTools:
			calls = append(calls, Tool{
				ID: r.ID, Path: r.Path, Frames: []int{}, Result: r.Arguments, ResultDir: r.dir.String(), ResultPath: r.Path, ResultFrames: r.Frames,
				frame: r.frame, dir: r.dir,
			})
		}
	}
	slices.SortStableFunc(calls, func(a, b Tool) int { return cmp.Compare(a.frame, b.frame) })
	return calls
}

// sameResult reports whether two accounts of a result are one: equal, or one
// with the other in it.
func sameResult(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	return a == b || a != "" && len(b) < maxResultSearched && strings.Contains(b, strings.TrimSpace(a))
}

// firstServerFrame is the first frame of the server that anything was found in.
func (c *collection) firstServerFrame(streams []*stream) int {
	first := math.MaxInt
	for _, s := range streams {
		if s.dir == captures.Down {
			first = min(first, s.pieces[0].frame)
		}
	}
	return first
}

// sharedIDs are identifiers that stand beside what was said: of messages, not of calls.
func (c *collection) sharedIDs(streams []*stream) map[string]bool {
	out := make(map[string]bool)
	for _, s := range streams {
		if s.role != assistant && s.role != thinking && s.role != user {
			continue
		}
		for _, p := range s.pieces {
			if id, _ := c.idOf(p.group); id != "" {
				out[id] = true
			}
		}
	}
	return out
}

// callParts groups the pieces of a role by the call that they belong to: by the
// identifier beside them, else by their message's frame, where pieces of one
// text that follow each other are of one call.
func (c *collection) callParts(streams []*stream, role int, shared map[string]bool) []Tool {
	var out []Tool
	byID := make(map[string]int)
	byFrame := make(map[int]int)
	byStream := make(map[*stream]int)
	for _, s := range streams {
		if s.role != role || role == toolCall && s.dir == captures.Up || s.stored {
			continue
		}
		last := ""
		for _, p := range s.pieces {
			id, _ := c.idOf(p.group)
			if shared[id] || id == p.text {
				id = ""
			}
			if id == "" && s.kind == delta {
				id = last
			}
			last = id
			at, ok := byID[id]
			if id == "" {
				if at, ok = byFrame[p.frame]; !ok && s.kind >= delta && s.kind != separate {
					at, ok = byStream[s]
				}
			}
			if !ok {
				if len(out) >= maxTools {
					continue
				}
				at = len(out)
				out = append(out, Tool{ID: id, Path: s.path, frame: p.frame, dir: s.dir, group: p.group})
				if id != "" {
					byID[id] = at
				}
			}
			byFrame[p.frame], byStream[s] = at, at
			out[at].addPiece(s, p)
		}
	}
	slices.SortStableFunc(out, func(a, b Tool) int { return cmp.Compare(a.frame, b.frame) })
	return out
}

func (t *Tool) addPiece(s *stream, p piece) {
	if p.frame < t.frame {
		t.frame, t.group = p.frame, p.group
	}
	t.last = max(t.last, p.frame)
	t.Frames = append(t.Frames, p.seq)
	for i := range t.values {
		if t.values[i].s == s {
			t.values[i].pieces = append(t.values[i].pieces, p)
			return
		}
	}
	t.values = append(t.values, value{s, []piece{p}})
}

// finish makes the text of the values: one alone as it is, several with their
// paths.
func (t *Tool) finish() {
	slices.Sort(t.Frames)
	t.Frames = slices.Compact(t.Frames)
	if len(t.values) > 1 {
		t.values = slices.DeleteFunc(t.values, func(v value) bool { return v.s.class == word && v.pieces[0].text == t.Name })
	}
	t.values = primaryValues(t.values)
	if len(t.values) == 1 {
		t.Path = t.values[0].s.path
	}
	var b strings.Builder
	for i, v := range t.values {
		_, text, _ := joinPieces(v.pieces, false, false)
		if len(t.values) > 1 {
			if i > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(v.s.path + ": ")
		}
		b.WriteString(text)
	}
	t.Arguments = strings.ToValidUTF8(b.String(), "\uFFFD")
	t.values = nil
}

// names are the words that may name tools, by the frame that they are in and by
// the identifier beside them.
type names struct {
	byFrame map[int][]namePiece
	byID    map[string][]namePiece
}

type namePiece struct {
	s *stream
	p piece
}

const maxNames = 64 // of one frame or identifier that are looked at

func (c *collection) toolNames(streams []*stream) names {
	n := names{make(map[int][]namePiece), make(map[string][]namePiece)}
	for _, s := range streams {
		if s.dir != captures.Down || s.role == toolCall && s.class != word || s.features[identifier] > 0 || s.class != word && s.class != plain || s.features[prose] > 0.4 {
			continue
		}
		for _, p := range s.pieces {
			if !isToolName(p.text) {
				continue
			}
			if len(n.byFrame[p.frame]) < maxNames {
				n.byFrame[p.frame] = append(n.byFrame[p.frame], namePiece{s, p})
			}
			if id, _ := c.idOf(p.group); id != "" && len(n.byID[id]) < maxNames {
				n.byID[id] = append(n.byID[id], namePiece{s, p})
			}
		}
	}
	return n
}

// nameFor is the word beside the arguments of t: in their message, in one that
// encloses it or stands in it, or beside the same identifier.
func (n names) nameFor(c *collection, t *Tool) string {
	best, bestScore := "", 0.15
	look := func(list []namePiece, far float64) {
		for _, x := range list {
			score := 1 / (1 + far)
			if x.p.frame == t.frame {
				score = 1 / float64(1+c.distance(x.p.group, t.group))
			}
			if strings.HasSuffix(strings.ToLower(x.s.name), "name") {
				score += 0.5
			}
			if x.s.discriminates || x.s.kind == same && len(x.s.seqs) > 2 {
				score *= 0.4 // a kind of message
			}
			if score > bestScore {
				best, bestScore = x.p.text, score
			}
		}
	}
	look(n.byFrame[t.frame], 0)
	if t.ID != "" {
		look(n.byID[t.ID], 2)
	}
	return best
}

// primaryValues drops the values beside one that is the whole: the JSON of all
// arguments, or the output that is longer than its names.
func primaryValues(values []value) []value {
	for _, v := range values {
		if v.s.features[jsonText] > 0 && v.s.role == toolCall {
			return []value{v}
		}
	}
	if len(values) < 2 || values[0].s.role != toolResult {
		return values
	}
	longest := slices.MaxFunc(values, func(a, b value) int { return cmp.Compare(len(a.s.text), len(b.s.text)) })
	return slices.DeleteFunc(values, func(v value) bool {
		return len(v.s.text)*4 < len(longest.s.text) && v.s.class != plain || v.s.text == longest.s.text && v.s != longest.s
	})
}

// distance is how many steps lead from one message to another of its frame, up
// to a message that encloses both; 9 for none.
func (c *collection) distance(a, b int32) int {
	for up := range 5 {
		for x, down := b, 0; x >= 0 && down < 5; down++ {
			if x == a {
				return up + down
			}
			x = c.groups[x].parent
		}
		if a < 0 {
			break
		}
		a = c.groups[a].parent
	}
	return 9
}

// isToolName reports whether s may name a function: one word.
func isToolName(s string) bool {
	if len(s) < 2 || len(s) > 64 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c != '_' && c != '.' && c != '-' && c != '/' && c != ':' && (c < '0' || c > '9')) {
			return false
		}
	}
	return true
}
