package captures

// An EventKind says what happened in a capture. The values stand in the file.
type EventKind uint8

const (
	Began     EventKind = iota // an exchange: its request's headers are known
	Responded                  // its response's headers are known
	Changed                    // its connection or trailers are known
	Received                   // a chunk
	Ended                      // nothing more will come
	Added                      // a note, a reading or a definition
)

// String returns the kind in lower case.
func (k EventKind) String() string {
	switch k {
	case Began:
		return "began"
	case Responded:
		return "responded"
	case Changed:
		return "changed"
	case Received:
		return "chunk"
	case Added:
		return "added"
	default:
		return "ended"
	}
}

// An Event is one thing that was recorded.
//
// Shape: Exchange is set unless Kind is Received or Added, Chunk only if it is Received.
// An exchange is given as it is now, which may be later than the event: the Began of one
// that has ended meanwhile shows its outcome already.
type Event struct {
	Kind     EventKind
	Exchange *Exchange
	Chunk    Chunk
	N        int64 // its number in the capture; numbers grow, with gaps

	// Addition is set if Kind is Added.
	Addition Addition
}

// An Addition is what users add to a capture: one of the three is set. An empty value, an
// empty type or a definition that is not active takes back an earlier one.
type Addition struct {
	Note       *Note
	Reading    *Reading
	Definition *Definition // in an Event without its data
}
