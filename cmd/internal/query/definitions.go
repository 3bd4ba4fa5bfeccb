package query

import (
	"context"
	"iter"

	"unwire/captures"
	"unwire/decode"
	"unwire/schema"
	"unwire/schema/reflection"
)

// KeptDefinitions loads the definitions that 'unwire use' stored in the capture; nil if there are none.
// Stored definitions of an unknown kind are ignored.
//
// Errors: a damaged capture, and definitions that do not compile or link.
func (c *Capture) KeptDefinitions(ctx context.Context) (*schema.Schema, error) {
	list, err := c.Definitions(ctx)
	if err != nil {
		return nil, err
	}
	texts, sets := map[string]string{}, map[string][]byte{}
	for _, d := range list {
		switch {
		case !d.Active:
		case d.Kind == captures.ProtoFile:
			texts[d.Name] = string(d.Data)
		case d.Kind == captures.DescriptorSet:
			sets[d.Name] = d.Data
		}
	}
	if len(texts) == 0 && len(sets) == 0 {
		return nil, nil
	}
	return schema.FromStored(ctx, texts, sets)
}

// ReportedDefinitions returns the .proto files that servers reported by gRPC server reflection in the
// exchange of the given number, or in any exchange if it is 0. If the capture has no call of server
// reflection, only URLs are read.
//
// Errors: those of reflection.FromCapture.
func (c *Capture) ReportedDefinitions(ctx context.Context, exchange int64) (*reflection.Files, error) {
	for service := range c.Methods(ctx) {
		if reflection.IsService(service) {
			return reflection.FromCapture(ctx, c, exchange)
		}
	}
	return &reflection.Files{}, ctx.Err()
}

// Methods yields service and name of each RPC method that the capture has a request of, once, and "" and
// "" once for requests that are not RPCs. It reads only URLs. For a damaged capture, it yields what can
// be read.
func (c *Capture) Methods(ctx context.Context) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		seen := map[[2]string]bool{}
		for r, err := range c.Requests(ctx) {
			if err != nil {
				return // what the capture is read for reports that
			}
			service, rpc := decode.MethodOfURL(r.Method, r.URL)
			if seen[[2]string{service, rpc}] {
				continue
			}
			seen[[2]string{service, rpc}] = true
			if !yield(service, rpc) {
				return
			}
		}
	}
}
