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

// extensionVersion is the v of an extension.
const extensionVersion = 1

// extension describes what an entry has no place for, but for the bodies.
func (o *Options) extension(ctx context.Context, h *loadedExchange, relations transfer.Relations) (*extension, error) {
	ex := h.ex
	x := headOf(ex, relations)
	x.Omitted = h.large
	for _, c := range h.chunks {
		x.Chunks = append(x.Chunks, mark{Dir: c.Dir.String(), TNS: int64(c.T), Len: len(c.Data)})
	}
	d, err := decode.Decode(ctx, h, ex.ID, decode.Options{})
	if err != nil {
		return nil, err
	}
	x.Protocol, x.Service, x.RPC, x.Codec, x.Code, x.Message = d.Protocol, d.Service, d.RPC, d.Codec, d.Code, d.Message
	if d.Protocol == decode.HTTP {
		return x, nil
	}
	total := 0
	for i := range d.Frames {
		f := &d.Frames[i]
		var md protoreflect.MessageDescriptor
		if total += len(f.Data); total > maxTrees {
			f.Tree, f.Inner = nil, nil
		} else if o.Type != nil {
			md = o.Type(d.Call, f.Dir)
		}
		x.Frames = append(x.Frames, decode.View{Type: md}.Line(f))
	}
	return x, nil
}

// headOf describes an exchange without its chunks.
func headOf(ex *captures.Exchange, relations transfer.Relations) *extension {
	return &extension{
		V: extensionVersion, ID: ex.ID, HTTP: ex.HTTP, Started: ex.Started.UTC(), DurationNS: int64(ex.Duration), Outcome: ex.Outcome,
		Error: ex.Error, Client: ex.Client, Server: ex.Server, TLS: ex.TLS, Process: ex.Process, Source: ex.Source,
		RequestTrailers: fieldsOf(ex.RequestTrailers), ResponseTrailers: fieldsOf(ex.ResponseTrailers), Relations: relations.JSON(ex.ID),
	}
}

// Exchange makes h a source of its one exchange.
func (h *loadedExchange) Exchange(context.Context, int64) (*captures.Exchange, error) {
	return h.ex, nil
}

// Profile is that of the capture.
func (h *loadedExchange) Profile() *profile.Profile { return h.profile }

// Chunks yields the chunks that are held.
func (h *loadedExchange) Chunks(_ context.Context, _, fromSeq int64) iter.Seq2[captures.Chunk, error] {
	return func(yield func(captures.Chunk, error) bool) {
		for _, c := range h.chunks {
			if c.Seq >= fromSeq && !yield(c, nil) {
				return
			}
		}
	}
}
