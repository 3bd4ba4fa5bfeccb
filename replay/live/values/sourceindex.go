package values

// A SourceKey identifies the values among which the source of a client's value may be.
type SourceKey struct {
	// value is the value.
	value string
	// last is the last name of the path; "" if the value may be in any field.
	last string
}

// SourceKeyOf returns the key of a value.
func SourceKeyOf(v *Leaf) SourceKey {
	if v.Small {
		return SourceKey{v.Value, v.Last}
	}
	return SourceKey{value: v.Value}
}

// A SourceIndex has the values of the server's first messages. Equal values are chained, the last message first, and in
// a message its first value first.
type SourceIndex struct {
	// added is the number of messages that were added.
	added int
	// places are the values, from index 1.
	places []sourcePlace
	// last are the indexes in places of those values that a search examines first.
	last map[SourceKey]int32
	// searches caches the results of searches.
	searches map[SourceSearch]sourceResult
}

// A sourcePlace is the position of a value in the server's messages.
type sourcePlace struct {
	Position
	// next is the index in places of the equal value that a search examines next; 0 for none.
	next int32
}

// A SourceSearch has what the result of a search for the source of a client's value depends on.
type SourceSearch struct {
	// Key identifies equal values.
	Key SourceKey
	// History is the history of the value's path.
	History uint64
	// Depth is the number of messages that enclose the value.
	Depth int
	// Message means that the value is a message.
	Message bool
	// Own means that the path is the client's own.
	Own bool
	// Alone means that the value is the only one of its message, and Pairs is the number of known pairs of paths then.
	Alone bool
	Pairs int
}

// A sourceResult is the result of a search that began at the place start: found, or 0.
type sourceResult struct{ start, found int32 }

// MayHaveSource reports whether a value of the client may come from the server.
func MayHaveSource(v *Leaf) bool {
	return v.Value != "t" && v.Value != "n0" && v.Value != "nfalse" && v.Value != "nnull"
}

// Add adds the values of messages up to the index before. Those of earlier calls are not added again.
func (x *SourceIndex) Add(messages [][]Leaf, before int) {
	if x.last == nil {
		x.places, x.last, x.searches = make([]sourcePlace, 1), map[SourceKey]int32{}, map[SourceSearch]sourceResult{}
	}
	for ; x.added < before; x.added++ {
		leaves := messages[x.added]
		for k := len(leaves) - 1; k >= 0; k-- {
			if v := &leaves[k]; MayHaveSource(v) {
				at := SourceKeyOf(v)
				x.places = append(x.places, sourcePlace{Position{int32(x.added), int32(k)}, x.last[at]})
				x.last[at] = int32(len(x.places) - 1)
			}
		}
	}
}

// Find returns the first of the values equal to that of the search for which isSource is true; ok is false if there is
// none.
func (x *SourceIndex) Find(s SourceSearch, isSource func(Position) bool) (at Position, ok bool) {
	start := x.last[s.Key]
	was := x.searches[s]
	found := start
	for found != 0 && found != was.start && !isSource(x.places[found].Position) {
		found = x.places[found].next
	}
	if found == was.start {
		found = was.found
	}
	if start != found {
		x.searches[s] = sourceResult{start, found}
	}
	return x.places[found].Position, found != 0
}
