package schemacmd

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"unwire/captures/redact"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/query"
	"unwire/decode"
	"unwire/decode/conversation"
	"unwire/decode/secret"
	"unwire/proto"
	"unwire/schema"
)

// readCleanFrames calls do with the frames of addresses, without their secrets.
func readCleanFrames(ctx context.Context, defs *schema.Schema, addresses []string, do func(address string, ex *decode.Exchange, f *decode.Frame)) error {
	byFile := map[string][]string{}
	for _, address := range addresses {
		file := query.ParseAddress(address).File
		byFile[file] = append(byFile[file], address)
	}
	for file, list := range byFile {
		if err := readFileClean(ctx, defs, file, list, do); err != nil {
			return err
		}
	}
	return nil
}

// readFileClean calls do with the frames of addresses in one file.
func readFileClean(ctx context.Context, defs *schema.Schema, file string, addresses []string, do func(address string, ex *decode.Exchange, f *decode.Frame)) error {
	store, err := app.OpenCapture(file)
	if err != nil {
		return err
	}
	defer store.Close()
	rules, err := app.ExportRules(ctx, defs)
	if err != nil {
		return err
	}
	view, err := secret.NewView(ctx, store.Store, redact.New(redact.Options{Profile: proto.Profile()}).Omitting(), rules)
	if err != nil {
		return err
	}
	joined, err := conversation.FindAll(ctx, view)
	if err != nil {
		return err
	}

	// Each exchange is decoded once.
	slices.SortStableFunc(addresses, func(a, b string) int {
		x, y := query.ParseAddress(a), query.ParseAddress(b)
		return cmp.Or(cmp.Compare(x.Exchange, y.Exchange), cmp.Compare(strconv.FormatBool(x.Part), strconv.FormatBool(y.Part)))
	})
	var ex *decode.Exchange
	last := query.Address{}
	for _, address := range addresses {
		at := query.ParseAddress(address)
		if ex == nil || at.Exchange != last.Exchange || at.Part != last.Part {
			if ex, err = decodeClean(ctx, view, joined, at); err != nil {
				return err
			}
			last = at
		}
		if f := ex.Frame(at.Dir, at.Frame); f != nil {
			do(address, ex, f)
		}
	}
	return nil
}

// decodeClean decodes the exchange of an address, which is a conversation where the
// address does not name the part.
func decodeClean(ctx context.Context, view *secret.View, joined *conversation.Set, at query.Address) (*decode.Exchange, error) {
	if !at.Part && joined.Head(at.Exchange) == at.Exchange {
		c, err := joined.Decode(ctx, view, at.Exchange, decode.Options{})
		if err != nil {
			return nil, err
		}
		return c.Exchange, nil
	}
	return decode.Decode(ctx, view, at.Exchange, decode.Options{})
}
