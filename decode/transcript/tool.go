package transcript

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"unwire/captures"
	"unwire/decode/transcript/naming"
)

// A Tool is a call of a tool, with its result if one was found.
type Tool struct {
	// ID is the call's identifier; "" if none was found.
	ID string `json:"id,omitempty"`

	// Name is the tool's name. It is "" if no name is next to the arguments; then Path
	// distinguishes the tools.
	Name string `json:"name,omitempty"`

	// Path is the path of the arguments.
	Path string `json:"path"`

	// Arguments is the text of the field that contains the arguments, or one line "path:
	// value" for each of several fields.
	Arguments string `json:"arguments"`

	// Frames are the sequence numbers of the arguments' frames in their direction.
	Frames []int `json:"frames"`

	// Result is the text of the result.
	Result string `json:"result,omitempty"`

	// ResultDir is the direction of the result, "up" or "down".
	ResultDir string `json:"result_dir,omitempty"`

	// ResultPath is the path of the result.
	ResultPath string `json:"result_path,omitempty"`

	// ResultFrames are the sequence numbers of the result's frames in their direction.
	ResultFrames []int `json:"result_frames,omitempty"`

	// Paired is how the result was found: "id" (same identifier), "order" (first call without a result), or "" if
	// there is no result.
	Paired string `json:"paired,omitempty"`

	// Earlier means that the client repeated the call, which the model made in an earlier exchange.
	Earlier bool `json:"earlier,omitempty"`

	// Exchange is the number of the exchange in which the model made a call that the client repeated; 0 if that is
	// unknown.
	Exchange int64 `json:"exchange,omitempty"`

	// ResultExchange is the number of the later exchange whose request has the result; 0 if it is in the same
	// exchange.
	ResultExchange int64 `json:"result_exchange,omitempty"`

	// event is the index of the first event of the call, if names in the messages mark it.
	event int

	// frame and last are the indexes of the first and last frame with arguments.
	frame, last int

	// dir is the direction in which the arguments were sent.
	dir captures.Direction

	// group is the index of the message (protobuf message or JSON object) that contains the first argument, in
	// collection.groups.
	group int32

	// values are the arguments or the parts of a result until finish joins them.
	values []toolValue
}

// A toolValue is one argument of a call, or one part of a result: the pieces of one stream.
type toolValue struct {
	// s is the stream to which the pieces belong.
	s *stream

	// pieces are the pieces of the value, in the order in which they were sent.
	pieces []textPiece
}

const (
	// maxTools is the maximum number of calls of an exchange.
	maxTools = 1000

	// maxResultSearched is the maximum size in bytes of a result that is compared with
	// another.
	maxResultSearched = 1 << 12
)

// turn returns the turn of the conversation that is the call; number is its position in Transcript.Tools, from 1.
func (t *Tool) turn(number int) Turn {
	return Turn{Role: roleToolCall, Dir: t.dir.String(), Path: t.Path, Frames: t.Frames, Tool: number, frame: t.frame}
}

// toolCalls returns the calls with their results, judged by the roles of the streams, in the order of the calls.
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
	// Join calls and results with the same identifier.
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

	// Join the remaining results with calls in order.
	known := make(map[string]bool)
	for i := range calls {
		known[calls[i].ID] = true
	}
	first := c.firstServerFrame(streams)
	for k := range results {
		r := &results[k]
		if taken[k] || r.frame < first {
			// It belongs to an earlier turn that was sent as history.
			continue
		}
		// Take the first call without a result: parallel calls are answered in order.
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
			// Both the client and the server sent this result.
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

// sameResult reports whether two results are the same: equal, or one contains the other.
func sameResult(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	return a == b || a != "" && len(b) < maxResultSearched && strings.Contains(b, strings.TrimSpace(a))
}

// firstServerFrame returns the index of the first frame of the server that has a text, or math.MaxInt.
func (c *collection) firstServerFrame(streams []*stream) int {
	first := math.MaxInt
	for _, s := range streams {
		if s.dir == captures.Down {
			first = min(first, s.pieces[0].frame)
		}
	}
	return first
}

// sharedIDs returns the identifiers next to texts of the conversation. They identify messages, not calls.
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

// callParts groups the pieces with a role (tool call or result) by the call to which they belong: by the identifier
// next to them, otherwise by frame. Pieces of one text belong to the same call. shared are identifiers that do not
// identify calls.
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
			// Only the first delta has the identifier.
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

// addPiece adds piece p of stream s to the arguments.
func (t *Tool) addPiece(s *stream, p textPiece) {
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
	t.values = append(t.values, toolValue{s, []textPiece{p}})
}

// finish sets Arguments from the values: a single value as it is, several values with
// their paths.
func (t *Tool) finish() {
	slices.Sort(t.Frames)
	t.Frames = slices.Compact(t.Frames)
	if len(t.values) > 1 {
		t.values = slices.DeleteFunc(t.values, func(v toolValue) bool { return v.s.class == word && v.pieces[0].text == t.Name })
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

// toolNameWords has the words that may be names of tools, by the index of their frame and by the identifier next to
// them.
type toolNameWords struct {
	// byFrame has the words by the index of the frame that contains them.
	byFrame map[int][]namePiece

	// byID has the words by the identifier that is next to them in the same message.
	byID map[string][]namePiece
}

// A namePiece is a piece that may be the name of a tool.
type namePiece struct {
	// s is the stream (the texts of one path) that contains the piece.
	s *stream

	// p is the piece, a text that may be the name of a tool.
	p textPiece
}

// maxNames is the maximum number of such words for each frame or identifier.
const maxNames = 64

// toolNames collects the words of the server that may be names of tools.
func (c *collection) toolNames(streams []*stream) toolNameWords {
	n := toolNameWords{make(map[int][]namePiece), make(map[string][]namePiece)}
	for _, s := range streams {
		if s.dir != captures.Down || s.role == toolCall && s.class != word || s.features[identifier] > 0 || s.class != word && s.class != plain || s.features[prose] > 0.4 {
			continue
		}
		for _, p := range s.pieces {
			if !naming.IsTool(p.text) {
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

// nameFor returns the most likely name for the call t: the word nearest to the arguments
// in the same frame, or next to the same identifier; "" if there is none.
func (n toolNameWords) nameFor(c *collection, t *Tool) string {
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
				// It names the kind of a message.
				score *= 0.4
			}
			if score > bestScore {
				best, bestScore = x.p.text, score
			}
		}
	}

	// A word next to the same identifier in another frame counts less.
	look(n.byFrame[t.frame], 0)
	if t.ID != "" {
		look(n.byID[t.ID], 2)
	}
	return best
}

// primaryValues removes values if another one contains the whole: the JSON of all arguments, or an output that is
// much longer than the others.
func primaryValues(values []toolValue) []toolValue {
	for _, v := range values {
		if v.s.features[jsonText] > 0 && v.s.role == toolCall {
			return []toolValue{v}
		}
	}
	if len(values) < 2 || values[0].s.role != toolResult {
		return values
	}
	longest := slices.MaxFunc(values, func(a, b toolValue) int { return cmp.Compare(len(a.s.text), len(b.s.text)) })
	return slices.DeleteFunc(values, func(v toolValue) bool {
		return len(v.s.text)*4 < len(longest.s.text) && v.s.class != plain || v.s.text == longest.s.text && v.s != longest.s
	})
}

// distance returns the number of steps from group a to group b of the same frame through the nearest group that
// encloses both; 9 if there is none.
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
