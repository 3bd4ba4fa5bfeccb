package captures

// An EventKind is the kind of an Event. The numbers are stored in the file.
type EventKind uint8

const (
	// Began: an exchange started. Its request headers are known.
	Began EventKind = iota
	// Responded: its response headers are known.
	Responded
	// Changed: its connection, process or trailers became known.
	Changed
	// Received: a chunk was recorded.
	Received
	// Ended: the exchange is over.
	Ended
	// Added: a user added a note, a reading or a definition.
	Added
)

// String returns the name of the kind in the JSON contract. Received is "chunk".
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

// An Event is one step of a recording.
//
// Shape: Exchange is set unless Kind is Received or Added. Chunk is set only for Received. Exchange is its
// current state, which may be newer than the event: the Began event of an exchange that has ended since already
// has the outcome.
type Event struct {
	// Kind is the kind of event, such as a new exchange or chunk.
	Kind EventKind
	// Exchange is the exchange that the event belongs to, and Chunk the received bytes.
	Exchange *Exchange
	Chunk    Chunk
	// N is the event's number in the capture. Numbers increase, with gaps.
	N int64

	// Addition is what a user added to the capture; it is set only if Kind is Added.
	Addition Addition
}

// An Addition is what a user added to a capture. Exactly one field is set. A note with an empty value, a reading
// with an empty type, or a definition that is not active removes an earlier one.
type Addition struct {
	// Note is an added note or mark, and Reading an added type of a field.
	Note    *Note
	Reading *Reading
	// Definition is an added definition. In an Event, its Data is not set.
	Definition *Definition
}
