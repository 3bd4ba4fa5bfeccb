package captures

// An EventKind is the kind of an Event, i.e. of one step of a recording. The numbers are stored in captures.
type EventKind uint8

const (
	// Began means that an exchange started. Its request headers are known.
	Began EventKind = iota
	// Responded means that the response headers of an exchange are known.
	Responded
	// Changed means that the server connection, the client process or the trailers of an exchange became known.
	Changed
	// Received means that a chunk was recorded.
	Received
	// Ended means that the exchange is over.
	Ended
	// Added means that a user added a note, the type of a field (a Reading) or a definition.
	Added
)

// String returns the name of the kind as used in JSON output. For Received, the name is "chunk".
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
// Shape: Exchange is set unless Kind is Received or Added. Chunk is set only for Received. Exchange has its
// current state, which may be newer than the event: if the exchange has ended in the meantime, the Began event
// already contains the outcome.
type Event struct {
	// Kind is the kind of event, such as a new exchange or chunk.
	Kind EventKind
	// Exchange is the exchange that the event belongs to, in its current state; nil if Kind is Received or
	// Added.
	Exchange *Exchange
	// Chunk contains the body bytes that arrived; it is set only if Kind is Received.
	Chunk Chunk
	// N is the event's number in the capture. Numbers increase, with gaps.
	N int64

	// Addition is what a user added to the capture; it is set only if Kind is Added.
	Addition Addition
}

// An Addition is a note, a field's type or a definition that a user added to a capture. Exactly one field is
// set. A note with an empty value, a reading with an empty type, or a definition that is not active removes an
// earlier one.
type Addition struct {
	// Note is a note or mark that a user attached to an exchange, frame or field; nil for other additions.
	Note *Note
	// Reading is the type that a user chose for a protobuf field; nil for other additions.
	Reading *Reading
	// Definition is an added definition. In an Event, its Data is not set.
	Definition *Definition
}
