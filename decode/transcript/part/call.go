package part

import (
	"cmp"
	"encoding/json"
	"strings"

	"unwire/captures"
	"unwire/decode/transcript/keyed"
)

// A Call is a call of a tool by the model, joined from its pieces.
type Call struct {
	// Dir is the direction: down for a call of this exchange, up for one that the client repeats.
	Dir captures.Direction

	// ID is the identifier to which the result refers; "" if the call does not have one.
	ID string

	// Name is the name of the called tool; "" if it is not known.
	Name string

	// Arguments are the arguments as JSON, or as sent.
	Arguments string

	// Path is the path of the arguments or, without arguments, of the call.
	Path string

	// Frames are the numbers, in their direction, of the frames that contain the call.
	Frames []int

	// First is the index in the exchange of the first frame that contains the call, counted over both directions.
	First int

	// Event is the index of the first event (one JSON message or text) that contains a part of the call.
	Event int

	// Message is the number of the message in a list that the client sent, from 1; 0 if it is not in a list.
	Message int

	// Result is the result of the call, or nil if none was found.
	Result *Result

	// pieces are the arguments as sent, by path and type, and sent those that are strings, in order. finish chooses among
	// them.
	pieces []arguments
	sent   []string

	// guessed means that some piece is one of arguments only if it is JSON.
	guessed bool

	// where is the path and type at which the call was first sent, and reported has all at which it was sent.
	where    string
	reported map[string]bool
}

// A Result is the result of a call of a tool.
type Result struct {
	// ID is the identifier of the call; "" if the result does not have it.
	ID string

	// Name is the name of the called tool; "" if the result does not have it.
	Name string

	// Dir is the direction in which the result was sent.
	Dir captures.Direction

	// Path is the path of the result: the names of JSON members, or the protobuf field numbers, joined by dots,
	// without indexes.
	Path string

	// Frames are the numbers, in their direction, of the frames that contain the result.
	Frames []int

	// First is the index in the exchange of the first of these frames, counted over both directions.
	First int

	// Text is the result as text.
	Text string

	// ByID means that the identifiers of the call and the result agree.
	ByID bool
}

// arguments are the pieces of a call's arguments that were sent at one path with one type.
type arguments struct {
	// where is the path and type at which they were sent, and path only the path.
	where, path string

	// delta means that the messages declare the pieces parts of longer arguments.
	delta bool

	// object means that each piece is a whole JSON object.
	object bool

	// texts are the pieces in order.
	texts []string
}

// maxCalls is the maximum number of calls of an exchange.
const maxCalls = 2_000

// A callList collects the calls of an exchange.
type callList struct {
	// calls are the calls so far, in the order in which they began.
	calls []*Call

	// at has the call for each identity (identifier or index) of its pieces.
	at map[string]*Call

	// within has the calls whose first pieces are inside an object with an identifier, by that identifier.
	within map[string][]*Call

	// last is the call to which the last piece was added.
	last *Call
}

// joinCalls joins the pieces of each call, and pairs the calls with their results.
func joinCalls(pieces []keyed.Piece) []Call {
	l := &callList{at: make(map[string]*Call), within: make(map[string][]*Call)}
	var results []Result
	for i := range pieces {
		if p := &pieces[i]; p.Channel == keyed.Result {
			if len(results) >= maxCalls {
				continue
			}
			results = append(results, Result{ID: p.ID, Name: p.Name, Dir: p.Dir, Path: p.Path, Frames: []int{p.Seq}, First: p.Frame, Text: p.Text})
		} else {
			l.add(p)
		}
	}
	for _, c := range l.calls {
		c.finish()
	}
	calls := l.distinct()
	pair(calls, results)
	out := make([]Call, 0, len(calls))
	for _, c := range calls {
		if c.Name != "" || c.Arguments != "" {
			out = append(out, *c)
		}
	}
	return out
}

// identities returns the identities by which a piece of a call is assigned to the call: its identifiers, the most
// specific first, and the indexes around it.
func identities(p *keyed.Piece) (ids []string, index string) {
	if p.ID != "" {
		ids = append(ids, "id "+p.ID)
	}
	for i := len(p.Keys) - 1; i >= 0; i-- {
		k := p.Keys[i]
		switch {
		case k.Index:
			index = k.Name + " " + k.Value + "/" + index
		case k.Name == "itemid" || k.Name == "callid" || k.Name == "toolcallid" || k.Name == "tooluseid":
			ids = append(ids, "id "+k.Value)
		case k.Name == "id" && i == len(p.Keys)-1 && p.ID != "":
			ids = append(ids, "id "+k.Value)
		}
	}
	if index != "" {
		index = "index " + p.Choice + "/" + index
	}
	return ids, index
}

// add adds a piece to the call to which it belongs, or as a new call.
func (l *callList) add(p *keyed.Piece) {
	ids, index := identities(p)
	// Later pieces may have only one of the identities, so all of them lead to the call from now on.
	c := l.find(p, ids, index)
	if c == nil {
		if len(l.calls) >= maxCalls {
			return
		}
		c = &Call{Dir: p.Dir, Path: p.Path, First: p.Frame, Event: p.Event, Message: p.Message, where: p.Path + " " + p.Type, reported: make(map[string]bool)}
		l.calls = append(l.calls, c)
		if outer := outerID(p); outer != "" {
			l.within[outer] = append(l.within[outer], c)
		}
	}
	for _, id := range ids {
		l.at[id] = c
	}
	if index != "" {
		l.at[index] = c
	}
	l.last = c
	c.reported[p.Path+" "+p.Type] = true

	if c.ID == "" || p.ID != "" && strings.HasSuffix(lastKey(p), "callid") {
		c.ID = p.ID
	}
	if c.Name == "" {
		c.Name = p.Name
	}
	if n := len(c.Frames); (n == 0 || c.Frames[n-1] != p.Seq) && p.Dir == c.Dir {
		c.Frames = append(c.Frames, p.Seq)
	}
	c.addArguments(p)
}

// lastKey returns the name of the innermost key of a piece whose value is the piece's ID.
func lastKey(p *keyed.Piece) string {
	for i := len(p.Keys) - 1; i >= 0; i-- {
		if p.Keys[i].Value == p.ID {
			return p.Keys[i].Name
		}
	}
	return ""
}

// outerID returns the identifier of the innermost object around the call that has one.
func outerID(p *keyed.Piece) string {
	for i := len(p.Keys) - 1; i >= 0; i-- {
		if k := p.Keys[i]; k.Name == "id" && k.Value != p.ID {
			return k.Value
		}
	}
	return ""
}

// find returns the call that a piece continues or repeats, or nil. ids and index are the piece's identities.
func (l *callList) find(p *keyed.Piece, ids []string, index string) *Call {
	for _, id := range ids {
		if c := l.at[id]; c != nil && agree(p.Name, c.Name) {
			return c
		}
	}
	if inside := l.within[outerID(p)]; p.Name == "" && p.ID == "" && len(inside) == 1 {
		// A later piece of the one call of a step.
		return inside[0]
	}
	if c := l.at[index]; index != "" && c != nil && c.Dir == p.Dir && agree(p.ID, c.ID) {
		// The same index with another name, or the same name without an identifier, is the next call.
		if p.Name == "" || c.Name == "" || c.Name == p.Name && p.ID != "" {
			return c
		}
	}
	if p.ID != "" || index != "" {
		return nil
	}
	return l.findUnidentified(p, ids)
}

// findUnidentified is find for a piece without an identifier of its own and without an index.
func (l *callList) findUnidentified(p *keyed.Piece, ids []string) *Call {
	switch {
	case p.Name != "" && len(ids) == 0:
		return l.findNamed(p)
	case p.Name == "" && l.last != nil && l.last.Dir == p.Dir:
		// Arguments continue the last call.
		return l.last
	}
	return nil
}

// findNamed returns the call that a piece reports once more, such as its end after its start, if only its name identifies
// it: the first of that name without such a report, unless both have arguments. It returns nil if there is none.
func (l *callList) findNamed(p *keyed.Piece) *Call {
	for _, c := range l.calls {
		if c.ID == "" && c.Dir == p.Dir && c.Message == p.Message && c.Name == p.Name && (p.Text == "" || len(c.pieces) == 0) && !c.reported[p.Path+" "+p.Type] {
			return c
		}
	}
	return nil
}

// agree reports whether two names or identifiers are equal or one is missing.
func agree(a, b string) bool { return a == "" || b == "" || a == b }

// addArguments adds the arguments in a piece to the call.
func (c *Call) addArguments(p *keyed.Piece) {
	if p.Text == "" {
		return
	}
	c.guessed = c.guessed || p.Guessed
	if !p.Object {
		c.sent = append(c.sent, p.Text)
	}
	where := p.Path + " " + p.Type
	for i := range c.pieces {
		if a := &c.pieces[i]; a.where == where && a.object == p.Object {
			a.texts = append(a.texts, p.Text)
			return
		}
	}
	c.pieces = append(c.pieces, arguments{where, p.Path, p.Delta, p.Object, []string{p.Text}})
	if len(c.pieces) == 1 {
		c.Path = p.Path
	}
}

// finish joins the pieces of the arguments and chooses among those sent at several paths: the first that are valid
// JSON and not empty.
func (c *Call) finish() {
	best := ""
	for _, a := range c.pieces {
		text := a.texts[len(a.texts)-1]
		if !a.object {
			text = concat(a.texts, a.delta, false)
			if !json.Valid([]byte(text)) && json.Valid([]byte(a.texts[len(a.texts)-1])) {
				text = a.texts[len(a.texts)-1]
			}
		}
		switch {
		case best == "" || best == "{}" || !json.Valid([]byte(best)) && json.Valid([]byte(text)):
			best = text
		}
	}
	if !json.Valid([]byte(best)) {
		best = cmp.Or(c.joinedByPath(), best)
	}
	if c.guessed && !json.Valid([]byte(best)) {
		best = ""
	}
	c.Arguments = strings.ToValidUTF8(best, "\uFFFD")
	c.pieces, c.sent = nil, nil
}

// joinedByPath returns the pieces at the first path at which they are valid JSON together, whatever their types are, or
// else all pieces in order, if they are; otherwise "". Some services declare the type of a call only in its first piece,
// or have a name of their own for the other pieces.
func (c *Call) joinedByPath() string {
	texts := make(map[string]string)
	for _, a := range c.pieces {
		texts[a.path] += strings.Join(a.texts, "")
	}
	for _, a := range c.pieces {
		if json.Valid([]byte(texts[a.path])) {
			return texts[a.path]
		}
	}
	if all := strings.Join(c.sent, ""); json.Valid([]byte(all)) {
		return all
	}
	return ""
}

// distinct returns the calls without those that repeat others: the same name and arguments at another path, where
// one of the two has no identifier or both have the same.
func (l *callList) distinct() []*Call {
	var out []*Call
	same := make(map[string][]*Call)
	for _, c := range l.calls {
		key := c.Name + " " + compact(c.Arguments)
		repeated := false
		for _, o := range same[key] {
			if o.where != c.where && (o.ID == "" || c.ID == "" || o.Dir == c.Dir && o.ID == c.ID) {
				repeated = true
				if o.ID == "" {
					o.ID = c.ID
				}
				break
			}
		}
		if !repeated {
			out, same[key] = append(out, c), append(same[key], c)
		}
	}
	return out
}

// maxCompared is the maximum size in bytes of arguments that are compared by value and not by spelling.
const maxCompared = 1 << 16

// compact returns the JSON in s with sorted members and without white space, or s if it is not JSON.
func compact(s string) string {
	if len(s) > maxCompared {
		return s
	}
	var v any
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return s
	}
	b, err := json.Marshal(v)
	if err != nil {
		return s
	}
	return string(b)
}

// pair assigns each result to a call: by identifier, then by the name of the tool, then in order.
func pair(calls []*Call, results []Result) {
	taken := make([]bool, len(results))
	match := func(fits func(c *Call, r *Result) bool, byID bool) {
		for i := range results {
			r := &results[i]
			if taken[i] {
				continue
			}
			for _, c := range calls {
				if c.Result != nil || c.First > r.First || !fits(c, r) {
					continue
				}
				taken[i] = true
				copied := *r
				copied.ByID = byID
				c.Result = &copied
				break
			}
		}
	}
	// An identifier is certain, a name is likely, and the order is a guess.
	match(func(c *Call, r *Result) bool { return r.ID != "" && r.ID == c.ID }, true)
	known := make(map[string]bool)
	for _, c := range calls {
		known[c.ID] = c.ID != ""
	}
	free := func(c *Call, r *Result) bool { return r.ID == "" || c.ID == "" && !known[r.ID] }
	match(func(c *Call, r *Result) bool { return free(c, r) && r.Name != "" && r.Name == c.Name }, false)
	match(func(c *Call, r *Result) bool { return free(c, r) && (r.Name == "" || c.Name == "") }, false)
}
