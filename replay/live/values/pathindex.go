package values

import (
	"cmp"
	"hash/maphash"
	"slices"
	"strings"
)

// A Position is the position of a value in the messages of one side.
type Position struct {
	// Message is the index of the message, and Leaf that of the value in it.
	Message, Leaf int32
}

// pathPlaces are the values that the messages of one side have at one path.
type pathPlaces struct {
	// leaves are all values at the path, in order.
	leaves []Position
	// messages are the indexes of the messages with a value at the path, without joined texts, in order.
	messages []int32
	// history is a hash of the values with their messages: it is equal for paths that have equal values in the
	// same messages.
	history uint64
	// first maps each value to the index of the first message that has it at the path; nil until it is needed.
	first map[string]int32
}

// A PathIndex has the values of the messages of one side of a conversation by their path.
type PathIndex struct {
	// messages are the values of the messages.
	messages [][]Leaf
	// byPath are the places of the values.
	byPath map[string]*pathPlaces
	// byList are the values of the messages for which Listed was called, and an element without a path for each of
	// these messages.
	byList map[listPlace][]*Leaf
}

// A listPlace is a path without the indexes of lists, in a message.
type listPlace struct {
	path    string
	message int
}

// NewPathIndex returns the index of the values in messages. isJoined reports whether a message has joined texts.
func NewPathIndex(messages [][]Leaf, isJoined func(message int) bool) *PathIndex {
	x := &PathIndex{messages: messages, byPath: map[string]*pathPlaces{}}
	seed := maphash.MakeSeed()
	for j := range messages {
		joined := isJoined(j)
		for k := range messages[j] {
			v := &messages[j][k]
			at := x.byPath[v.Path]
			if at == nil {
				at = &pathPlaces{}
				x.byPath[v.Path] = at
			}
			at.leaves = append(at.leaves, Position{int32(j), int32(k)})
			at.history = maphash.Comparable(seed, struct {
				history uint64
				message int
				value   string
			}{at.history, j, v.Value})
			if n := len(at.messages); !joined && (n == 0 || at.messages[n-1] != int32(j)) {
				at.messages = append(at.messages, int32(j))
			}
		}
	}
	return x
}

// Messages returns the values of the messages.
func (x *PathIndex) Messages() [][]Leaf { return x.messages }

// at returns the places of the values at a path.
func (x *PathIndex) at(path string) *pathPlaces {
	if at := x.byPath[path]; at != nil {
		return at
	}
	return &pathPlaces{}
}

// History returns a hash of the values at a path with their messages. It is equal for paths that have equal values in the
// same messages.
func (x *PathIndex) History(path string) uint64 { return x.at(path).history }

// Places returns the places of the values at a path, in order.
func (x *PathIndex) Places(path string) []Position { return x.at(path).leaves }

// Rank returns the number of messages up to message j that have a value at path, without joined texts.
func (x *PathIndex) Rank(path string, j int) int {
	n, _ := slices.BinarySearch(x.at(path).messages, int32(j)+1)
	return n
}

// IsBefore reports whether one of the first messages has a value at path; before is their number.
func (x *PathIndex) IsBefore(path, value string, before int) bool {
	at := x.at(path)
	if at.first == nil {
		at.first = make(map[string]int32, len(at.leaves))
		for _, p := range at.leaves {
			v := x.messages[p.Message][p.Leaf].Value
			if _, known := at.first[v]; !known {
				at.first[v] = p.Message
			}
		}
	}
	j, ok := at.first[value]
	return ok && int(j) < before
}

// In returns the places of the values that a message has at a path; message is its index.
func (x *PathIndex) In(path string, message int) []Position {
	list := x.at(path).leaves
	find := func(message int) int {
		n, _ := slices.BinarySearchFunc(list, int32(message), func(p Position, m int32) int { return cmp.Compare(p.Message, m) })
		return n
	}
	return list[find(message):find(message+1)]
}

// Listed returns the values of a message whose path without the indexes of lists is path; message is its index.
func (x *PathIndex) Listed(path string, message int) []*Leaf {
	if x.byList == nil {
		x.byList = map[listPlace][]*Leaf{}
	}
	at := listPlace{"", message}
	if _, known := x.byList[at]; !known {
		x.byList[at] = nil
		leaves := x.messages[message]
		for k := range leaves {
			of := listPlace{WithoutIndexes(leaves[k].Path), message}
			x.byList[of] = append(x.byList[of], &leaves[k])
		}
	}
	return x.byList[listPlace{path, message}]
}

// Firsts returns the first value at path of each message that has one, among the first messages; most is their
// number.
func (x *PathIndex) Firsts(path string, most int) (list []Position) {
	for _, p := range x.at(path).leaves {
		if int(p.Message) >= most {
			break
		}
		if len(list) == 0 || list[len(list)-1].Message != p.Message {
			list = append(list, p)
		}
	}
	return list
}

// Value returns the value at a place.
func (x *PathIndex) Value(p Position) string { return x.messages[p.Message][p.Leaf].Value }

// WithoutIndexes returns a text without the indexes of lists, such as [3]. The text may be a path or a part, which is not
// always a path. edit.WithoutIndexes is for paths only: it returns other texts unchanged, and keeps an index behind no name.
func WithoutIndexes(path string) string {
	if !strings.Contains(path, "[") {
		return path
	}
	out := make([]byte, 0, len(path))
	for i := 0; i < len(path); i++ {
		end := i + 1
		for path[i] == '[' && end < len(path) && path[end] >= '0' && path[end] <= '9' {
			end++
		}
		if end > i+1 && end < len(path) && path[end] == ']' {
			i = end
			continue
		}
		out = append(out, path[i])
	}
	return string(out)
}
