package mcp

import (
	"encoding/json"
	"errors"
	"strings"

	"unwire/captures"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/query"
	"unwire/schema/infer"
	"unwire/schema/infer/messages"
	"unwire/schema/infer/naming"
)

// inferArguments are the arguments of the tool infer.
type inferArguments struct {
	// Captures is the argument captures: captures or exchanges to infer from; default: all captures.
	Captures []string `json:"captures,omitempty" jsonschema:"captures or exchanges to infer from; default: all captures"`
	// Package is the argument package: package of all definitions; default: the packages of the methods.
	Package string `json:"package,omitempty" jsonschema:"package of all definitions; default: the packages of the methods"`
	// Message is the argument message: only the fields of messages whose full name begins with this.
	Message string `json:"message,omitempty" jsonschema:"only the fields of messages whose full name begins with this"`
	// NoNames is the argument no_names: do not take field names from definitions.
	NoNames bool `json:"no_names,omitempty" jsonschema:"do not take field names from definitions"`
	// Framing is the argument framing: for connections without HTTP: delimited, delimited32be, delimited32le or
	// frames.
	Framing string `json:"framing,omitempty" jsonschema:"for connections without HTTP: delimited, delimited32be, delimited32le or frames"`
	// paging adds the arguments that limit the size of the answer and continue it at a cursor.
	paging
}

// inferDefinitions implements the tool infer: it adds to the answer the inferred .proto files, and then
// the evidence for each field.
func inferDefinitions(c *call, in inferArguments) error {
	addresses, err := c.shelf.addresses(in.Captures)
	if err != nil {
		return err
	}
	found, damage, err := c.inferFrom(addresses, in)
	if err != nil {
		return err
	}
	for _, f := range contract.NewInferredFiles(found) {
		if err := c.add("", f); err != nil {
			return err
		}
	}
	for i := range found.Fields {
		if !strings.HasPrefix(found.Fields[i].Message, in.Message) {
			continue
		}
		line, err := json.Marshal(inferredField{1, &found.Fields[i]})
		if err != nil {
			return err
		}
		if err := c.page.AddJSON("", line); err != nil {
			return err
		}
	}
	return damage
}

// inferFrom infers definitions from captures or exchanges. damage reports the parts of the captures that
// could not be read; found is the result for the others.
func (c *call) inferFrom(addresses []query.Address, in inferArguments) (found *infer.Inferred, damage, err error) {
	g := query.Inference{Evidence: infer.NewEvidence()}
	if g.Messages.Split, err = parseFraming(in.Framing); err != nil {
		return nil, nil, err
	}
	damage = c.withEach(addresses, in.Framing, func(capture *query.Capture, at query.Address) error {
		c.mentionCalls(capture, at)
		remarks, err := g.Add(c.ctx, capture, at)
		for _, r := range remarks {
			if problem := errors.Join(r.Undecoded, r.Rejected); problem != nil {
				c.app.Say("unwire: %s#%d: %v", at.File, r.Exchange, problem)
			}
		}
		return err
	})
	if damage != nil && !errors.Is(damage, captures.ErrDamaged) {
		return nil, nil, damage
	}
	if found, err = c.inferred(&g, in, addresses); err != nil {
		return nil, nil, err
	}
	if len(found.Files) == 0 {
		return nil, nil, app.Fail(app.ExitInput, errors.New("the captures contain no protobuf RPC message"), "the tool list shows each exchange's codec; definitions cannot be inferred from JSON, which contains no field numbers")
	}
	return found, damage, nil
}

// An inferredField is the JSON object for one field: the same as in an evidence file of 'schema infer'.
type inferredField struct {
	// V is the version of the format, always 1.
	V int `json:"v"`
	// FieldEvidence is the inferred declaration of the field, with the evidence for it; its fields become members of
	// the JSON object.
	*infer.FieldEvidence
}

// inferred infers definitions from the evidence in g, and gives fields names from known definitions
// unless the arguments forbid that.
func (c *call) inferred(g *query.Inference, in inferArguments, addresses []query.Address) (*infer.Inferred, error) {
	found, err := infer.Infer(g.Evidence, infer.Options{Package: in.Package, Profile: c.app.Profile()})
	if err != nil {
		return nil, err
	}
	if err := messages.Write(found, g.Evidence, in.Package); err != nil {
		return nil, err
	}
	if len(found.Files) == 0 {
		return found, nil
	}
	if !in.NoNames {
		// The built-in definitions do not count: what was inferred is compared with them.
		known, err := c.app.Remembered(c.ctx, c.Proto, texts(addresses)...)
		if err != nil {
			return nil, err
		}
		if known != nil {
			if n := naming.Fields(found, known); n > 0 {
				c.app.Say("unwire: took the names of %s from existing definitions (no_names turns this off)", app.Counted(n, "field"))
			}
		}
	}

	// Fields without a name get one that their values suggest, as in the command.
	naming.Suggest(found)
	return found, nil
}
