// Package front holds what the front ends of the gateway have in common: the
// interface of the core that they call, reading a request within limits, the table of
// a request's parameters, images, and server-sent events.
//
// A front end translates: a request of its API becomes a turn.Request, the events of
// the turn become the API's events, and a *turn.Error becomes the API's error. It keeps
// no state between requests.
package front

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"unwire/replay/agent/turn"
)

// A Core runs turns of conversations for the front ends, each of which translates a public API. The
// gateway implements it.
type Core interface {
	// Models returns the models that the upstream server offers.
	Models(ctx context.Context) ([]turn.Model, error)

	// Model returns the model with an id or alias, or the one to which the gateway maps the name.
	//
	// Errors: a *turn.Error of kind NotFound.
	Model(ctx context.Context, name string) (turn.Model, error)

	// Turn starts a turn, or continues the turn for which the request contains tool results. ctx only
	// limits the start; the turn continues until it ends or is closed.
	//
	// Errors: a *turn.Error.
	Turn(ctx context.Context, r *turn.Request) (Turn, error)
}

// A Turn is the answer to one request, as a stream of events.
type Turn interface {
	// Next waits for the next event of the answer. After Ended it returns io.EOF. If ctx ends first, no
	// event is lost, and Next may be called again.
	//
	// Errors: ctx's, or a *turn.Error, which ends the turn.
	Next(ctx context.Context) (turn.Event, error)

	// Close releases the turn. If Ended was not reached, the turn is cancelled upstream.
	Close()
}

// ChooseModel replaces r.Model by the id of the model that will answer. If that is another model than
// the client named, it returns a note about it.
//
// Errors: kind NotFound.
func ChooseModel(ctx context.Context, core Core, r *turn.Request) (notes []string, err *turn.Error) {
	m, e := core.Model(ctx, r.Model)
	if e != nil {
		return nil, turn.AsError(e)
	}
	isName := func(name string) bool { return strings.EqualFold(name, r.Model) }
	if !isName(m.ID) && !isName(m.Name) && !slices.ContainsFunc(m.Aliases, isName) {
		notes = []string{fmt.Sprintf("model: the upstream has no %.60q, so %s answers", r.Model, m.ID)}
	}
	r.Model = m.ID
	return notes, nil
}
