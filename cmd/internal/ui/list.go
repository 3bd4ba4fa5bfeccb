package ui

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/decode/filter"
)

// maxListed bounds the exchanges of one answer.
const maxListed = 1000

// listEndpoints returns the API endpoints about the list of exchanges and its filters.
func listEndpoints() []endpoint {
	return []endpoint{
		{path: "captures", answer: answerCaptures},
		{path: "list", answer: answerList},
		{path: "position", answer: answerPosition},
		{path: "complete", answer: answerCompletion},
		{path: "filters", answer: answerFilters},
		{path: "filters/save", post: true, answer: saveFilters},
	}
}

// answerCaptures implements the endpoint captures. It returns the paths of the captures and the version
// of the program.
func answerCaptures(_ context.Context, q *request) (any, error) {
	paths := q.options.Files()
	if paths == nil {
		paths = []string{}
	}
	return map[string]any{"v": 1, "captures": paths, "version": q.options.Version}, nil
}

// selected calls do with the list of exchanges and the selection that the parameters filter and sort ask
// for, and returns what do returns. It waits, up to firstWait, until the list has at least as many rows
// as the parameter rows says or is complete.
func (q *request) selected(ctx context.Context, rows int, do func(*listing, *selection) (any, error)) (any, error) {
	f, err := q.file()
	if err != nil {
		return nil, err
	}
	filterText, sort := q.query.Get("filter"), q.query.Get("sort")
	s, err := newSelection(filterText, sort)
	if err != nil {
		return nil, err
	}
	l, err := f.list(ctx)
	if err != nil {
		return nil, err
	}
	if err := l.wait(ctx, firstWait, func() bool { return l.done >= l.wanted || len(l.rows) >= rows }); err != nil {
		return nil, err
	}
	f.listMu.Lock()
	if kept := f.selection; kept != nil && kept.filter == filterText && kept.sort == sort {
		s = kept
	} else {
		f.selection = s
	}
	f.listMu.Unlock()

	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.follow(ctx, f, l); err != nil {
		return nil, err
	}
	if err := s.evaluate(ctx, filterTime); err != nil {
		return nil, err
	}
	return do(l, s)
}

// answerList implements the endpoint list. It returns a range of the selected exchanges. Their total can
// still grow while the member reading is true, or judged is less than all: the capture is being read, or
// the filter is being evaluated.
func answerList(ctx context.Context, q *request) (any, error) {
	from, to, err := q.window(maxListed)
	if err != nil {
		return nil, err
	}
	return q.selected(ctx, to, func(l *listing, s *selection) (any, error) {
		found := s.lines()
		out, err := lines(found[min(from, len(found)):min(to, len(found))])
		if err != nil {
			return nil, err
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		return map[string]any{
			"v": 1, "last": l.done, "all": len(s.rows), "total": len(found), "damage": l.damage, "exchanges": out,
			"reading": l.done < l.wanted, "judged": s.judged(),
		}, nil
	})
}

// answerPosition implements the endpoint position. It returns the position of the exchange x in the
// selected exchanges, or -1.
func answerPosition(ctx context.Context, q *request) (any, error) {
	id, err := q.number("x", 0)
	if err != nil {
		return nil, err
	}
	return q.selected(ctx, 0, func(_ *listing, s *selection) (any, error) {
		found := s.lines()
		if s.parsed == nil && s.sort == "" {
			at, ok := slices.BinarySearchFunc(found, id, func(l *contract.Exchange, id int64) int { return int(l.ID - id) })
			if !ok {
				at = -1
			}
			return map[string]any{"v": 1, "position": at}, nil
		}
		at := slices.IndexFunc(found, func(l *contract.Exchange) bool { return l.ID == id })
		return map[string]any{"v": 1, "position": at}, nil
	})
}

// answerCompletion implements the endpoint complete. It returns the possible completions of a filter at
// the offset at.
func answerCompletion(ctx context.Context, q *request) (any, error) {
	f, err := q.file()
	if err != nil {
		return nil, err
	}
	text := q.query.Get("filter")
	at, err := q.number("at", int64(len(text)))
	if err != nil {
		return nil, err
	}
	l, err := f.list(ctx)
	if err != nil {
		return nil, err
	}
	type candidate struct {
		Text  string `json:"text"`
		About string `json:"about"`
	}
	list := []candidate{}
	found, err := filter.Complete(text, int(min(at, int64(len(text)))), l.filterValues)
	if err != nil {
		return map[string]any{"v": 1, "candidates": list, "error": app.PlainText(err)}, nil
	}
	for _, k := range found.Candidates[:min(len(found.Candidates), 20)] {
		list = append(list, candidate{k.Text, k.About})
	}
	return map[string]any{"v": 1, "from": found.From, "to": found.To, "candidates": list}, nil
}

// maxFilters bounds the saved filters.
const maxFilters = 100

// A savedFilter is a filter that the user has saved.
type savedFilter struct {
	// Name is the name that the user gave it.
	Name string `json:"name"`

	// Filter is the filter expression.
	Filter string `json:"filter"`
}

// answerFilters implements the endpoint filters. It returns the saved filters.
func answerFilters(_ context.Context, q *request) (any, error) {
	list := []savedFilter{}
	data, err := readSmallFile(q.options.Filters)
	if err != nil {
		return nil, err
	}
	if len(data) > 0 {
		if err := json.Unmarshal(data, &list); err != nil {
			return nil, fmt.Errorf("%s cannot be read: %w", q.options.Filters, err)
		}
	}
	return map[string]any{"v": 1, "filters": list}, nil
}

// saveFilters implements the endpoint filters/save. It replaces all saved filters.
func saveFilters(_ context.Context, q *request) (any, error) {
	list := []savedFilter{}
	if err := q.parse(&list); err != nil {
		return nil, err
	}
	if len(list) > maxFilters {
		return nil, badRequest("at most %d filters can be saved", maxFilters)
	}
	for _, f := range list {
		if _, err := filter.Parse(f.Filter, time.Now()); err != nil || f.Name == "" {
			return nil, badRequest("%s: %v", f.Name, err)
		}
	}
	data, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return nil, err
	}
	return map[string]any{"v": 1}, writeSmallFile(q.options.Filters, append(data, '\n'))
}
