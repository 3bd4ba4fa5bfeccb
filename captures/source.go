package captures

import (
	"context"
	"iter"
	"time"

	"unwire/captures/profile"
)

// A ChunkSource has the chunks of exchanges.
type ChunkSource interface {
	// Chunks yields the chunks of exchange id from sequence number fromSeq on,
	// in the order of their numbers.
	Chunks(ctx context.Context, id, fromSeq int64) iter.Seq2[Chunk, error]
}

// A Source has exchanges with their chunks.
type Source interface {
	ChunkSource

	// Exchange returns exchange id. Errors: ErrNoExchange.
	Exchange(ctx context.Context, id int64) (*Exchange, error)

	// Profile is what is known of the service that the exchanges are with; nil is
	// nothing.
	Profile() *profile.Profile
}

// A Capture is a Source that can list its exchanges: a capture file, or a view
// of one.
type Capture interface {
	Source

	// Exchanges yields the exchanges in the order of their numbers.
	Exchanges(ctx context.Context) iter.Seq2[*Exchange, error]
}

// A Recorder records exchanges: into a capture file, or a series of them.
type Recorder interface {
	// Begin starts recording an exchange. Whatever ex holds beyond the request
	// is kept, so an exchange that is known as a whole may be begun with all
	// of it.
	Begin(ex Exchange) (Recording, error)
}

// A Target is a Recorder that an import writes to.
type Target interface {
	Recorder

	// Relate records how two exchanges are related that were recorded before, whether they
	// have ended or not.
	Relate(r Relation)

	// PutNote records what a user wrote about an exchange that was recorded before, in the
	// place of the note of its kind at its place.
	PutNote(ctx context.Context, n Note) error

	// Flush waits until what was recorded before is stored.
	Flush(ctx context.Context) error

	// Err returns what stopped the recording, if anything did.
	Err() error
}

// A Recording is an exchange that is being recorded. Its methods may be called
// from several goroutines, typically one per direction. They may block, so that
// a recorder that is too slow slows the traffic down, and do nothing once the
// exchange has ended or recording has failed.
type Recording interface {
	// ID returns the exchange's number in the capture.
	ID() int64

	// Response records the response's status and headers.
	Response(status int, h Headers)

	// Chunk records a run of body bytes that passed just now. It copies p.
	Chunk(dir Direction, p []byte)

	// ChunkAt is Chunk for bytes that passed at time t from Exchange.Started,
	// as in a capture of another tool.
	ChunkAt(dir Direction, t time.Duration, p []byte)

	// MessageAt is ChunkAt for a message of a WebSocket, or a part of one, unmasked and
	// decompressed.
	MessageAt(dir Direction, t time.Duration, op Opcode, p []byte)

	// Message is MessageAt for what passed just now.
	Message(dir Direction, op Opcode, p []byte)

	// Relate records how the exchange is related to another one of the same capture.
	Relate(kind RelationKind, target int64)

	// Trailers records the trailers of one direction.
	Trailers(dir Direction, h Headers)

	// Connection records what is known of the connection to the server.
	Connection(t TLS, server string)

	// Process records the program that made the connection, for one that is found out
	// after Begin.
	Process(p Process)

	// End records how the exchange ended, and why if it failed. Only the
	// first call counts.
	End(o Outcome, errText string)

	// EndAt is End for an exchange that took as long as d.
	EndAt(d time.Duration, o Outcome, errText string)
}
