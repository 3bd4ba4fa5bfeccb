package har

import (
	"context"
	"iter"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/captures/profile"
	"unwire/captures/transfer"
	"unwire/decode"
)

// extensionVersion is the value of "v" in the member _unwire of HAR entries.
const extensionVersion = 1

// extension returns the member _unwire of an exchange's HAR entry: all recorded properties that HAR cannot
// represent, except the bodies.
func (o *Options) extension(ctx context.Context, h *loadedExchange, relations transfer.Relations) (*extension, error) {
	ex := h.ex
	x := headOf(ex, relations)
	x.Omitted = h.tooLarge
	for _, c := range h.chunks {
		x.Chunks = append(x.Chunks, chunkMark{Dir: c.Dir.String(), TNS: int64(c.T), Len: len(c.Data)})
	}

	// Decode from memory: the chunks are loaded already.
	d, err := decode.Decode(ctx, h, ex.ID, decode.Options{})
	if err != nil {
		return nil, err
	}
	x.Protocol, x.Service, x.RPC, x.Codec, x.Code, x.Message = d.Protocol, d.Service, d.RPC, d.Codec, d.Code, d.Message
	if d.Protocol == decode.HTTP {
		return x, nil
	}

	// Frames are written decoded, but large ones only without their fields.
	total := 0
	memory := new(decode.Memory)
	x.Frames = make([]decode.Line, 0, len(d.Frames))
	for i := range d.Frames {
		f := &d.Frames[i]
		var md protoreflect.MessageDescriptor
		if total += len(f.Data); total > maxTreeBytes {
			f.Tree, f.Inner = nil, nil
		} else if o.Type != nil {
			md = o.Type(d.Call, f.Dir)
		}
		x.Frames = append(x.Frames, decode.View{Type: md, Memory: memory}.Line(f))
	}
	return x, nil
}

// headOf returns the HAR extension for an exchange, without chunks and frames.
func headOf(ex *captures.Exchange, relations transfer.Relations) *extension {
	return &extension{
		V: extensionVersion, ID: ex.ID, HTTP: ex.HTTP, Started: ex.Started.UTC(), DurationNS: int64(ex.Duration), Outcome: ex.Outcome,
		Error: ex.Error, Client: ex.Client, Server: ex.Server, TLS: ex.TLS, Process: ex.Process, Source: ex.Source,
		RequestTrailers: fieldsOf(ex.RequestTrailers), ResponseTrailers: fieldsOf(ex.ResponseTrailers), Relations: relations.JSON(ex.ID),
	}
}

// Exchange returns the loaded exchange, whatever the ID. With the other methods, it makes a loadedExchange a
// source for decode.Decode.
func (h *loadedExchange) Exchange(context.Context, int64) (*captures.Exchange, error) {
	return h.ex, nil
}

// Profile returns the profile of the exported capture.
func (h *loadedExchange) Profile() *profile.Profile { return h.profile }

// Chunks yields the chunks in memory, beginning with the one whose Seq is fromSeq.
func (h *loadedExchange) Chunks(_ context.Context, _, fromSeq int64) iter.Seq2[captures.Chunk, error] {
	return func(yield func(captures.Chunk, error) bool) {
		for _, c := range h.chunks {
			if c.Seq >= fromSeq && !yield(c, nil) {
				return
			}
		}
	}
}
