package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/cmd/internal/term"
	"unwire/decode"
	"unwire/decode/diff"
	"unwire/decode/kind"
	"unwire/decode/wire"
	"unwire/schema"
)

// maxSeries bounds the exchanges or messages of a series.
const maxSeries = 2000

// A variationLine is a line of `unwire diff --series --json`.
type variationLine struct {
	V int `json:"v"`
	diff.Variation
	Name string `json:"name,omitempty"`
}

// diffSeries says which paths vary over messages, exchanges, or the exchanges
// of one method.
func (a *app) diffSeries(ctx context.Context, args []string, f diffFlags) error {
	if len(args) == 0 {
		return fail(exitUsage, errors.New("unwire diff --series: missing argument"), "usage: unwire diff --series F.uwc#1 F.uwc#2 F.uwc#3, or --series --method Run F.uwc")
	}
	defs, err := f.definitions(ctx)
	if err != nil {
		return err
	}
	s := seriesInput{}
	for _, arg := range args {
		if err := a.addSeries(ctx, &s, arg, f.method); err != nil {
			return err
		}
	}
	n := max(len(s.exchanges), len(s.trees))
	switch {
	case len(s.exchanges) > 0 && len(s.trees) > 0:
		return usagef("exchanges and single messages do not make one series")
	case n == 0:
		return fail(exitInput, errors.New("no exchange to compare"), "'unwire ls F.uwc' lists the methods")
	case n < 2:
		return usagef("a series needs at least two")
	}
	names := namer{defs: defs}
	if names.root, err = f.root(defs); err != nil {
		return err
	}
	var list []diff.Variation
	if len(s.exchanges) > 0 {
		names.call = s.exchanges[0].Call
		list = diff.ExchangeSeries(s.exchanges)
	} else {
		if names.root == nil {
			names.root = s.root(defs)
		}
		list = diff.TreeSeries(s.trees, s.choices)
	}
	return a.printSeries(list, names, n, f)
}

// A seriesInput is what a series is made of: exchanges or messages.
type seriesInput struct {
	exchanges []*decode.Exchange
	trees     []*wire.Tree
	first     address          // of the first message that is a frame
	of        *decode.Exchange // its exchange
	choices   []kind.Choice    // what captures remember of the messages' fields
}

func (s *seriesInput) root(defs *schema.Schema) protoreflect.MessageDescriptor {
	if s.of == nil {
		return nil
	}
	return frameType(defs, s.of.Call, s.first.Dir)
}

func (a *app) addSeries(ctx context.Context, s *seriesInput, arg, method string) error {
	addr := parseAddress(arg)
	if len(s.exchanges)+len(s.trees) >= maxSeries {
		return usagef("a series has at most %d parts", maxSeries)
	}
	switch {
	case addr.Exchange != 0 && addr.Frame < 0:
		ex, err := decodeAt(ctx, addr)
		if err == nil {
			s.exchanges = append(s.exchanges, ex)
		}
		return err
	case addr.Exchange == 0 && isCapture(addr.File):
		if method == "" {
			return fail(exitUsage, fmt.Errorf("%s: a series of which method?", arg), "name it with --method, or single exchanges as "+arg+"#1")
		}
		store, err := openCapture(addr.File)
		if err != nil {
			return err
		}
		defer store.Close()
		return diff.EachOfMethod(ctx, store, method, func(ex *decode.Exchange) {
			if len(s.exchanges) < maxSeries {
				s.exchanges = append(s.exchanges, ex)
			}
		})
	}
	m, err := a.readMessage(ctx, arg)
	if err != nil {
		return err
	}
	if m.stream != nil {
		return fail(exitInput, fmt.Errorf("%s holds several messages: a part of a series is one message or one exchange", inputName(arg)),
			"'unwire diff' compares two such files")
	}
	if s.of == nil {
		s.of, s.first = m.of, addr
	}
	s.choices = append(s.choices, m.choices...)
	s.trees = append(s.trees, wire.Parse(m.data, wire.Options{}))
	return nil
}

func (a *app) printSeries(list []diff.Variation, names namer, n int, f diffFlags) error {
	var rows [][]string
	varies, volatile := 0, 0
	for _, v := range list {
		switch v.Class {
		case diff.Varies:
			varies++
		case diff.Volatile:
			volatile++
		}
		fd, name := names.field(v.Path)
		if f.format == "json" {
			if err := a.printJSON(variationLine{1, v, name}); err != nil {
				return err
			}
			continue
		}
		if v.Class == diff.Constant && v.Present == v.Of && !f.all {
			continue
		}
		examples := make([]string, len(v.Examples))
		for i, e := range v.Examples {
			examples[i] = shownValue(e, fd, 40)
		}
		rows = append(rows, []string{
			v.Path, string(v.Class), fmt.Sprintf("%d of %d", v.Present, v.Of), fmt.Sprint(v.Values), term.Clean(strings.Join(examples, "  ")), name,
		})
	}
	if len(rows) > 0 {
		if err := a.out.Table([]string{"PATH", "CLASS", "IN", "VALUES", "EXAMPLES", "NAME"}, rows); err != nil {
			return err
		}
	}
	a.say("%d paths over %d: %d vary, %d volatile, %d constant (--all lists them)", len(list), n, varies, volatile, len(list)-varies-volatile)
	for _, v := range list {
		if v.Class == diff.Varies || v.Present < v.Of {
			return fail(exitFinding, nil, "")
		}
	}
	return nil
}
