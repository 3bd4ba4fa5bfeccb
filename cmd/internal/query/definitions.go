package query

import (
	"context"

	"unwire/captures"
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
