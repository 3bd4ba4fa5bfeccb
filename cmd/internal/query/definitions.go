package query

import (
	"context"
	"iter"

	"unwire/captures"
	"unwire/decode"
	"unwire/schema"
)

// KeptDefinitions loads the definitions that the capture keeps; nil if it keeps none. Those
// of kinds that are not known are left out.
//
// Errors: of a damaged capture, and definitions that do not compile or link.
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

// Services yields the full names of the services that requests of the capture name, each
// once, and "" once for requests that name none. Only URLs are read. Of a damaged capture
// there are those that can be read.
func (c *Capture) Services(ctx context.Context) iter.Seq[string] {
	return func(yield func(string) bool) {
		seen := map[string]bool{}
		for r, err := range c.Requests(ctx) {
			if err != nil {
				return // what the capture is read for reports that
			}
			service := decode.ServiceOf(r.Method, r.URL)
			if seen[service] {
				continue
			}
			seen[service] = true
			if !yield(service) {
				return
			}
		}
	}
}
