package captures

import (
	"context"
	"iter"
	"time"

	"unwire/captures/profile"
)

// A ChunkSource reads the stored body chunks of exchanges.
type ChunkSource interface {
	// Chunks yields the chunks of exchange id, ordered by Seq, from fromSeq on.
	Chunks(ctx context.Context, id, fromSeq int64) iter.Seq2[Chunk, error]
}

// A Source reads stored exchanges by ID.
type Source interface {
	ChunkSource

	// Exchange returns the exchange with an ID. Errors: ErrNoExchange.
	Exchange(ctx context.Context, id int64) (*Exchange, error)

	// Profile describes the recorded service; nil if nothing is known about it.
	Profile() *profile.Profile
}

// A Capture is a Source that can list its exchanges: a capture file, or a filtered view of one.
type Capture interface {
	Source

	// Exchanges yields all exchanges of the capture, ordered by ID.
	Exchanges(ctx context.Context) iter.Seq2[*Exchange, error]
}

// A Recorder stores exchanges: in one capture file, or in a series of them.
type Recorder interface {
	// Begin starts the recording of an exchange. It stores every field of ex that is set, so that an exchange
	// that is complete already (for instance an imported one) can be begun with all of its fields.
	Begin(ex Exchange) (Recording, error)
}

// A Target is a Recorder with the additional methods that an import from another format needs.
type Target interface {
	Recorder

	// Relate links two exchanges that were begun before; they may be in flight.
	Relate(r Relation)

	// PutNote stores a note about an exchange that was begun before. It replaces the note of the same kind at
	// the same place.
	PutNote(ctx context.Context, n Note) error

	// Flush waits until all data recorded so far is stored on disk.
	Flush(ctx context.Context) error

	// Err returns the error that stopped the recording, if any.
	Err() error
}

// A Recording is an exchange that is being recorded. Its methods may be called from several goroutines,
// typically one per direction. They may block: a slow recorder thus slows the traffic down (back-pressure). They
// do nothing once the exchange has ended or recording has failed.
type Recording interface {
	// ID returns the number of the recorded exchange in the capture.
	ID() int64

	// Response records the status and the headers of the response.
	Response(status int, h Headers)

	// Chunk records body bytes that arrived just now. It copies p.
	Chunk(dir Direction, p []byte)

	// ChunkAt records body bytes that arrived at time t after Exchange.Started, for imports. It copies p.
	ChunkAt(dir Direction, t time.Duration, p []byte)

	// MessageAt records a WebSocket message, or a fragment of one, that arrived at time t after
	// Exchange.Started. p is unmasked and decompressed.
	MessageAt(dir Direction, t time.Duration, op Opcode, p []byte)

	// Message records a WebSocket message, or a fragment of one, that arrived just now. p is unmasked and
	// decompressed.
	Message(dir Direction, op Opcode, p []byte)

	// Relate records that this exchange is related to the exchange target of the same capture.
	Relate(kind RelationKind, target int64)

	// Trailers records the HTTP trailers of one direction.
	Trailers(dir Direction, h Headers)

	// Edit records that a rewriting rule replaced the received body bytes from offset start (inclusive)
	// to end (exclusive) with data. rule is the rule's name. Edits of a direction must not overlap.
	// Edit copies data.
	Edit(dir Direction, start, end int64, rule string, data []byte)

	// ForwardHead records the HTTP head of one direction as it was forwarded, if the rewriting rule
	// with this name changed it.
	ForwardHead(dir Direction, rule string, h ForwardedHead)

	// Connection records the TLS details and the address of the server.
	Connection(t TLS, server string)

	// Process records the client program, for callers that identify it only after Begin.
	Process(p Process)

	// End records the outcome, and an error text if the exchange failed. Only the first call has an effect.
	End(o Outcome, errText string)

	// EndAt records the outcome of an exchange that lasted d, for imports, and an error text if it failed. Only the
	// first call has an effect.
	EndAt(d time.Duration, o Outcome, errText string)
}
