package inspect

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/query"
	"unwire/cmd/internal/render"
	"unwire/cmd/internal/term"
	"unwire/decode"
	"unwire/decode/diff"
	"unwire/decode/kind"
	"unwire/decode/wire"
	"unwire/schema"
)

// maxSeries bounds the exchanges or messages of a series.
const maxSeries = 2000

// diffSeries says which paths vary over messages, exchanges, or the exchanges
// of one method.
func diffSeries(ctx context.Context, a *app.App, args []string, f DiffFlags) error {
	if len(args) == 0 {
		return app.Fail(app.ExitUsage, errors.New("unwire diff --series: missing argument"), "usage: unwire diff --series F.uwc#1 F.uwc#2 F.uwc#3, or --series --method Run F.uwc")
	}
	defs, err := f.definitions(ctx)
	if err != nil {
		return err
	}
	s := seriesInput{}
	for _, arg := range args {
		if err := addSeries(ctx, a, &s, arg, f.method); err != nil {
			return err
		}
	}
	n := max(len(s.exchanges), len(s.trees))
	switch {
	case len(s.exchanges) > 0 && len(s.trees) > 0:
		return app.Usagef("exchanges and single messages do not make one series")
	case n == 0:
		return app.Fail(app.ExitInput, errors.New("no exchange to compare"), "'unwire ls F.uwc' lists the methods")
	case n < 2:
		return app.Usagef("a series needs at least two")
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
	return printSeries(a, list, names, n, f)
}

// A seriesInput is what a series is made of: exchanges or messages.
type seriesInput struct {
	exchanges []*decode.Exchange
	trees     []*wire.Tree
	first     query.Address    // of the first message that is a frame
	of        *decode.Exchange // its exchange
	choices   []kind.Choice    // what captures remember of the messages' fields
}

func (s *seriesInput) root(defs *schema.Schema) protoreflect.MessageDescriptor {
	if s.of == nil {
		return nil
	}
	return app.FrameType(defs, s.of.Call, s.first.Dir)
}

func addSeries(ctx context.Context, a *app.App, s *seriesInput, arg, method string) error {
	addr := query.ParseAddress(arg)
	if len(s.exchanges)+len(s.trees) >= maxSeries {
		return app.Usagef("a series has at most %d parts", maxSeries)
	}
	switch {
	case addr.Exchange != 0 && addr.Frame < 0:
		ex, err := decodeAt(ctx, addr)
		if err == nil {
			s.exchanges = append(s.exchanges, ex)
		}
		return err
	case addr.Exchange == 0 && app.IsCapture(addr.File):
		if method == "" {
			return app.Fail(app.ExitUsage, fmt.Errorf("%s: a series of which method?", arg), "name it with --method, or single exchanges as "+arg+"#1")
		}
		store, err := app.OpenCapture(addr.File)
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
	m, err := readMessage(ctx, a, arg)
	if err != nil {
		return err
	}
	if m.stream != nil {
		return app.Fail(app.ExitInput, fmt.Errorf("%s holds several messages: a part of a series is one message or one exchange", app.InputName(arg)),
			"'unwire diff' compares two such files")
	}
	if s.of == nil {
		s.of, s.first = m.of, addr
	}
	s.choices = append(s.choices, m.choices...)
	s.trees = append(s.trees, wire.Parse(m.data, wire.Options{}))
	return nil
}

func printSeries(a *app.App, list []diff.Variation, names namer, n int, f DiffFlags) error {
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
		if f.Format == "json" {
			if err := a.Print(&contract.Variation{Variation: v, Name: name}); err != nil {
				return err
			}
			continue
		}
		if v.Class == diff.Constant && v.Present == v.Of && !f.All {
			continue
		}
		examples := make([]string, len(v.Examples))
		for i, e := range v.Examples {
			examples[i] = render.ShownValue(e, fd, 40)
		}
		rows = append(rows, []string{
			v.Path, string(v.Class), fmt.Sprintf("%d of %d", v.Present, v.Of), fmt.Sprint(v.Values), term.Clean(strings.Join(examples, "  ")), name,
		})
	}
	if len(rows) > 0 {
		if err := a.Out.Table([]string{"PATH", "CLASS", "IN", "VALUES", "EXAMPLES", "NAME"}, rows); err != nil {
			return err
		}
	}
	a.Say("%d paths over %d: %d vary, %d volatile, %d constant (--all lists them)", len(list), n, varies, volatile, len(list)-varies-volatile)
	for _, v := range list {
		if v.Class == diff.Varies || v.Present < v.Of {
			return app.Fail(app.ExitFinding, nil, "")
		}
	}
	return nil
}
