package mcp

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/query"
	"unwire/decode"
	"unwire/decode/fieldpath"
	"unwire/decode/filter"
	"unwire/decode/kind"
	"unwire/decode/search"
	"unwire/decode/text"
	"unwire/decode/transcript"
	"unwire/schema"
)

// inspectTools returns the tools that read exchanges.
func inspectTools() []tool {
	return []tool{
		define("list", "List exchanges", "Lists the exchanges of captures: method, URL, RPC, code, sizes, times, relations, notes. Same objects as 'unwire ls --json'.", list),
		define("show", "Show frames", "Shows the decoded frames of an exchange, or one frame: each field with its offset, type, probability and alternatives. Same objects as 'unwire show --json'.", show),
		define("decode", "Decode bytes", "Decodes one frame, or bytes in hex or base64, and also the formats inside its values, such as JSON in a string. 'unwire encode' turns the returned JSON back into the same bytes. Same object as 'unwire decode --json'.", decodeBytes),
		define("explain", "Explain a field's type", "Explains the inferred type of a field: all possible types with their probabilities, the evidence for each type, and which further data would decide between them. The evidence comes from all messages of the method. Same objects as 'unwire show --explain PATH --json'.", explain),
		define("search", "Search frames", "Finds text, bytes, numbers or field paths in decoded frames, also in compressed and nested data. Same objects as 'unwire grep --json'.", searchFrames),
		define("transcript", "Extract conversations", "Finds the chat conversation in an exchange: prompt, thinking, tool calls, answer and number of tokens. Each text comes with its frames, its score and the reasons for the score. Same objects as 'unwire chat --json'.", transcripts),
	}
}

// listArguments are the arguments of the tool list.
type listArguments struct {
	// Captures is the argument captures: captures to list; default: all.
	Captures []string `json:"captures,omitempty" jsonschema:"captures to list; default: all"`
	// Filter is the argument filter: terms such as host:api.* method:Run code:!ok status>=400 size>1KB duration>2s
	// is:failed text:"rate limit" path:1.7="x*" dir:down note:x.
	Filter string `json:"filter,omitempty" jsonschema:"terms such as host:api.* method:Run code:!ok status>=400 size>1KB duration>2s is:failed text:\"rate limit\" path:1.7=\"x*\" dir:down note:x"`
	// paging adds the arguments that limit the size of the answer and continue it at a cursor.
	paging
}

// list implements the tool list: it adds to the answer the exchanges that the filter selects.
func list(c *call, in listArguments) error {
	addresses, err := c.shelf.addresses(in.Captures)
	if err != nil {
		return err
	}
	selected, err := parseFilter(in.Filter)
	if err != nil {
		return err
	}
	return c.withEach(addresses, "", func(capture *query.Capture, at query.Address) error {
		// Definitions take time to load, so only a filter that needs types loads them.
		var defs *schema.Schema
		if selected.Needs()&filter.Types != 0 {
			if defs, err = c.definitions(at.File); err != nil {
				return err
			}
		}
		lines, damage := capture.ExchangeLines(c.ctx, selected, defs)
		for _, l := range lines {
			if at.Exchange != 0 && l.ID != at.Exchange {
				continue
			}
			// Lines name their capture only if there are several captures.
			if len(addresses) > 1 {
				l.File = at.File
			}
			address := query.Address{File: at.File, Exchange: l.ID, Frame: -1}
			if err := c.add(address.String(), l); err != nil {
				return err
			}
		}
		if len(lines) == 0 && damage == nil && in.Filter == "" {
			c.app.Say("unwire: %s contains no exchanges", at.File)
		}
		return damage
	})
}

// parseFilter parses the argument filter.
func parseFilter(text string) (*filter.Filter, error) {
	f, err := filter.Parse(text, time.Now())
	if wrong, ok := errors.AsType[*filter.Error](err); ok {
		return nil, app.Fail(app.ExitUsage, fmt.Errorf("filter: column %d: %s", wrong.Column, wrong.Text), "examples: method:Run code:!ok, host:api.* duration>2s, is:failed, text:\"rate limit\", path:1.7=\"x*\"")
	}
	return f, err
}

// showArguments are the arguments of the tool show.
type showArguments struct {
	// Address is the argument address: exchange or frame: F.uwc#7 or F.uwc#7/up/0; without the file if there is one
	// capture: 7 or 7/up/0.
	Address string `json:"address" jsonschema:"exchange or frame: F.uwc#7 or F.uwc#7/up/0; without the file if there is one capture: 7 or 7/up/0"`
	// ReadAs is the argument read_as: how fields are read in this answer, such as 1.2:string or down:7.2:fixed64; the
	// capture does not remember it.
	ReadAs []string `json:"read_as,omitempty" jsonschema:"how fields are read in this answer, such as 1.2:string or down:7.2:fixed64; the capture does not remember it"`
	// Parts is the argument parts: only this call, not the whole stream that it is part of.
	Parts bool `json:"parts,omitempty" jsonschema:"only this call, not the whole stream that it is part of"`
	// Framing is the argument framing: for connections without HTTP, how messages are delimited: delimited,
	// delimited32be, delimited32le or frames.
	Framing string `json:"framing,omitempty" jsonschema:"for connections without HTTP, how messages are delimited: delimited, delimited32be, delimited32le or frames"`
	// paging adds the arguments that limit the size of the answer and continue it at a cursor.
	paging
}

// show implements the tool show: it adds to the answer the decoded frames of an exchange, or one frame.
func show(c *call, in showArguments) error {
	at, err := c.shelf.exchange(in.Address)
	if err != nil {
		return err
	}
	at.Part = at.Part || in.Parts
	choices, err := parseChoices(in.ReadAs)
	if err != nil {
		return err
	}
	defs, err := c.definitions(at.File)
	if err != nil {
		return err
	}
	return c.with(at.File, in.Framing, func(capture *query.Capture) error {
		ex, err := capture.EachFrameLine(c.ctx, at, defs, choices, func(l query.FrameLine) error {
			return c.add(l.Address.String(), l.Line)
		})
		if ex != nil {
			c.app.SayUndefined(defs, ex.Service)
			c.remarkUndecoded(ex)
		}
		if wrong, ok := errors.AsType[*query.ChoiceError](err); ok {
			return app.Fail(app.ExitUsage, fmt.Errorf("read_as: %w", wrong), "call show without read_as to see the fields, or explain to see the types that a field can have")
		}
		return c.noFrame(err, at)
	})
}

// maxChoices is the largest number of field types that a client can choose in one call.
const maxChoices = 100

// parseChoices parses the argument read_as: types that the client chooses for fields, such as 1.2:string.
func parseChoices(texts []string) (list []query.Choice, err error) {
	if len(texts) > maxChoices {
		return nil, &argumentError{fmt.Sprintf("read_as has %d fields; the limit is %d", len(texts), maxChoices)}
	}
	for _, text := range texts {
		choice, err := query.ParseChoice(text)
		if err != nil {
			return nil, &argumentError{fmt.Sprintf("read_as: %v", err)}
		}
		list = append(list, choice)
	}
	return list, nil
}

// noFrame adds a hint to the error that an exchange does not have the addressed frame; it returns other
// errors unchanged.
func (c *call) noFrame(err error, at query.Address) error {
	if query.IsNoFrame(err) {
		return app.Fail(app.ExitInput, err, fmt.Sprintf("show with the address %s#%d lists the frames, which count from 0 in each direction", at.File, at.Exchange))
	}
	return err
}

// decodeArguments are the arguments of the tool decode.
type decodeArguments struct {
	// Address is the argument address: frame to decode, such as F.uwc#7/up/0.
	Address string `json:"address,omitempty" jsonschema:"frame to decode, such as F.uwc#7/up/0"`
	// Data is the argument data: bytes to decode instead of a frame.
	Data string `json:"data,omitempty" jsonschema:"bytes to decode instead of a frame"`
	// Encoding is the argument encoding: encoding of data: auto (default), hex or base64.
	Encoding string `json:"encoding,omitempty" jsonschema:"encoding of data: auto (default), hex or base64"`
	// As is the argument as: structure of the bytes: auto (default), message, frames or delimited.
	As string `json:"as,omitempty" jsonschema:"structure of the bytes: auto (default), message, frames or delimited"`
	// Type is the argument type: full name of the message type in the definitions.
	Type string `json:"type,omitempty" jsonschema:"full name of the message type in the definitions"`
	// paging adds the arguments that limit the size of the answer and continue it at a cursor.
	paging
}

// decodeBytes implements the tool decode: it adds to the answer a frame, or bytes that the client sent,
// as decoded messages.
func decodeBytes(c *call, in decodeArguments) error {
	if (in.Address == "") == (in.Data == "") {
		return &argumentError{"give either the address of a frame or data"}
	}
	o := text.Options{In: in.Encoding, As: in.As}
	if !slices.Contains([]string{"", "auto", "hex", "base64"}, in.Encoding) {
		return &argumentError{fmt.Sprintf("encoding must be auto, hex or base64, not %q", in.Encoding)}
	}
	if !slices.Contains([]string{"", "auto", "message", "frames", "delimited"}, in.As) {
		return &argumentError{fmt.Sprintf("as must be auto, message, frames or delimited, not %q", in.As)}
	}

	// The bytes of a frame come with a type and evidence, which frameData adds to the options.
	data := []byte(in.Data)
	address := ""
	if in.Address != "" {
		at, err := c.shelf.exchange(in.Address)
		if err != nil {
			return err
		}
		if address, data, err = c.frameData(at, &o); err != nil {
			return err
		}
	}

	// A type that the client names replaces the one of the frame's method.
	if in.Type != "" {
		defs, _, err := c.app.LookDefinitions(c.ctx, c.Proto, c.shelf.files()...)
		if err != nil {
			return err
		}
		if o.Type = defs.Message(in.Type); o.Type == nil {
			return app.Fail(app.ExitUsage, fmt.Errorf("the definitions contain no message %s", in.Type), "give the full name, package.Message; the tool definitions, with find, searches for names")
		}
	}
	doc, err := text.Decode(data, o)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := doc.JSON(&out); err != nil {
		return err
	}
	return c.page.AddJSON(address, out.Bytes())
}

// frameData returns the address and the bytes of a frame, and sets in o the type and evidence with which
// they are decoded.
func (c *call) frameData(at query.Address, o *text.Options) (address string, data []byte, err error) {
	if at.Frame < 0 {
		return "", nil, app.Fail(app.ExitUsage, fmt.Errorf("%s: the address names an exchange, but no frame of it", at), fmt.Sprintf("name a frame, such as %s/down/0", at))
	}
	defs, err := c.definitions(at.File)
	if err != nil {
		return "", nil, err
	}
	err = c.with(at.File, "", func(capture *query.Capture) error {
		ex, err := capture.Resolve(c.ctx, at.Exchange, at.Part)
		if err != nil {
			return err
		}
		f, err := query.FrameAt(ex.Exchange, at)
		if err != nil {
			return c.noFrame(err, at)
		}
		by := capture.Views(c.ctx, ex, defs).Of(ex.Call, f.Dir)
		data = f.Data
		o.In, o.Type, o.Evidence, o.Choices = "raw", by.Type, by.Evidence, by.Choices
		return nil
	})
	return at.String(), data, err
}

// explainArguments are the arguments of the tool explain.
type explainArguments struct {
	// Address is the argument address: exchange or frame with the field: F.uwc#7 or F.uwc#7/up/0.
	Address string `json:"address" jsonschema:"exchange or frame with the field: F.uwc#7 or F.uwc#7/up/0"`
	// Path is the argument path: field numbers joined by dots, such as 7.2 or 1.2[0].5; with the prefix up: or down:
	// for one direction.
	Path string `json:"path" jsonschema:"field numbers joined by dots, such as 7.2 or 1.2[0].5; with the prefix up: or down: for one direction"`
	// paging adds the arguments that limit the size of the answer and continue it at a cursor.
	paging
}

// explain implements the tool explain: it adds to the answer the evidence for the type of a field.
func explain(c *call, in explainArguments) error {
	at, err := c.shelf.exchange(in.Address)
	if err != nil {
		return err
	}
	where, err := query.ParseChoice(in.Path + ":" + kind.Auto)
	if err != nil {
		return app.Fail(app.ExitUsage, fmt.Errorf("path must be field numbers, such as 1.2 or down:1.2, not %q", in.Path), "the tool show prints the fields' numbers")
	}
	defs, err := c.definitions(at.File)
	if err != nil {
		return err
	}

	// A path that no message has gives no explanation and no error, so the calls are noted.
	found := false
	err = c.with(at.File, "", func(capture *query.Capture) error {
		err := capture.ExplainExchange(c.ctx, at, where, defs, func(frame query.Address, list []contract.Explanation) error {
			found = true
			for i := range list {
				if err := c.add(frame.String(), &list[i]); err != nil {
					return err
				}
			}
			return nil
		})
		return c.noFrame(err, at)
	})
	if err == nil && !found {
		return app.Fail(app.ExitUsage, fmt.Errorf("no message at %s has the field %s", at, in.Path), "the tool show prints the fields with their numbers; the tool search, with path, lists the frames that have a field")
	}
	return err
}

// searchArguments are the arguments of the tool search. At most one of text, regexp, bytes and number can
// be set.
type searchArguments struct {
	// Captures is the argument captures: captures, exchanges or frames to search; default: all captures.
	Captures []string `json:"captures,omitempty" jsonschema:"captures, exchanges or frames to search; default: all captures"`
	// Text is the argument text: text to find.
	Text string `json:"text,omitempty" jsonschema:"text to find"`
	// Regexp is the argument regexp: regular expression (RE2) to find.
	Regexp string `json:"regexp,omitempty" jsonschema:"regular expression (RE2) to find"`
	// IgnoreCase is the argument ignore_case: ignore case.
	IgnoreCase bool `json:"ignore_case,omitempty" jsonschema:"ignore case"`
	// Bytes is the argument bytes: bytes to find, in hex.
	Bytes string `json:"bytes,omitempty" jsonschema:"bytes to find, in hex"`
	// Number is the argument number: number to find, in any encoding.
	Number string `json:"number,omitempty" jsonschema:"number to find, in any encoding"`
	// Path is the argument path: only fields with this path; * is one field, ** any number of fields; alone, it lists
	// the fields with their values.
	Path string `json:"path,omitempty" jsonschema:"only fields with this path; * is one field, ** any number of fields; alone, it lists the fields with their values"`

	// Dir is the argument dir: up or down; default: both.
	Dir string `json:"dir,omitempty" jsonschema:"up or down; default: both"`
	// Method is the argument method: only calls of this method: Run or pkg.Service/Run; * is any text.
	Method string `json:"method,omitempty" jsonschema:"only calls of this method: Run or pkg.Service/Run; * is any text"`
	// Filter is the argument filter: only exchanges and frames that match this filter, as for list.
	Filter string `json:"filter,omitempty" jsonschema:"only exchanges and frames that match this filter, as for list"`
	// Headers is the argument headers: search URLs and headers, too.
	Headers bool `json:"headers,omitempty" jsonschema:"search URLs and headers, too"`
	// Framing is the argument framing: for connections without HTTP: delimited, delimited32be, delimited32le or
	// frames.
	Framing string `json:"framing,omitempty" jsonschema:"for connections without HTTP: delimited, delimited32be, delimited32le or frames"`
	// paging adds the arguments that limit the size of the answer and continue it at a cursor.
	paging
}

// query converts the arguments to a search, or returns an argumentError.
func (in *searchArguments) query() (q query.Search, err error) {
	given := 0
	for _, s := range []string{in.Text, in.Regexp, in.Bytes, in.Number} {
		if s != "" {
			given++
		}
	}
	switch {
	case given > 1:
		return q, &argumentError{"only one of text, regexp, bytes and number can be given"}
	case given == 0 && in.Path == "":
		return q, &argumentError{"nothing to search for: give text, regexp, bytes, number or path"}
	case !slices.Contains(directions, in.Dir):
		return q, &argumentError{fmt.Sprintf("dir must be up or down, not %q", in.Dir)}
	}

	// Check the glob here, since the search would treat an invalid one as no match.
	q.Headers, q.Dir, q.Method = in.Headers, in.Dir, in.Method
	if _, err := path.Match(in.Method, ""); err != nil {
		return q, &argumentError{fmt.Sprintf("method %q: %v", in.Method, err)}
	}
	if in.Path != "" {
		if q.Path, err = fieldpath.ParsePattern(in.Path); err != nil {
			return q, &argumentError{"path: " + err.Error()}
		}
	}
	switch {
	case in.Bytes != "":
		q.Bytes, err = hex.DecodeString(strings.Join(strings.Fields(strings.TrimPrefix(in.Bytes, "0x")), ""))
		if err != nil || len(q.Bytes) == 0 {
			return q, &argumentError{fmt.Sprintf("bytes must be hex, such as 0a05ff, not %q", in.Bytes)}
		}
	case in.Number != "":
		if q.Number, err = search.ParseNumber(in.Number); err != nil {
			return q, &argumentError{"number: " + err.Error()}
		}
	case in.Text != "":
		q.Text, err = search.NewText(in.Text, true, in.IgnoreCase)
	case in.Regexp != "":
		if q.Text, err = search.NewText(in.Regexp, false, in.IgnoreCase); err != nil {
			return q, &argumentError{"regexp: " + err.Error() + "; use text for literal text"}
		}
	}
	return q, err
}

// searchFrames implements the tool search: it adds to the answer all matches.
func searchFrames(c *call, in searchArguments) error {
	addresses, err := c.shelf.addresses(in.Captures)
	if err != nil {
		return err
	}
	what, err := in.query()
	if err != nil {
		return err
	}
	if in.Filter != "" {
		if what.Filter, err = parseFilter(in.Filter); err != nil {
			return err
		}
	}
	what.Match = func(m *contract.Match) (bool, error) { return true, c.add(m.Address, m) }
	return c.withEach(addresses, in.Framing, func(capture *query.Capture, at query.Address) error {
		what.Names = sync.OnceValues(func() (*schema.Schema, error) { return c.definitions(at.File) })
		if what.Filter != nil && what.Filter.Needs()&filter.Types != 0 {
			if what.Definitions, err = what.Names(); err != nil {
				return err
			}
		}
		return capture.Search(c.ctx, at, what)
	})
}

// transcriptArguments are the arguments of the tool transcript.
type transcriptArguments struct {
	// Address is the argument address: exchange, such as F.uwc#7, or a capture for all its exchanges; default: the
	// only capture.
	Address string `json:"address,omitempty" jsonschema:"exchange, such as F.uwc#7, or a capture for all its exchanges; default: the only capture"`
	// Parts is the argument parts: treat each call separately, even if several calls form one conversation.
	Parts bool `json:"parts,omitempty" jsonschema:"treat each call separately, even if several calls form one conversation"`
	// paging adds the arguments that limit the size of the answer and continue it at a cursor.
	paging
}

// transcripts implements the tool transcript: it adds to the answer the conversations in a capture or an
// exchange.
func transcripts(c *call, in transcriptArguments) error {
	// Weights of unwire.yaml apply here as on the command line, so that both give the same answer.
	at, err := c.shelf.address(in.Address)
	if err != nil {
		return err
	}
	o := query.TranscriptOptions{Parts: in.Parts}
	if o.Weights, err = c.app.LoadWeights(c.app.Weights("")); err != nil {
		return err
	}
	defs, err := c.definitions(at.File)
	if err != nil {
		return err
	}
	add := func(ex *decode.Exchange, tr *transcript.Transcript) error {
		address := query.Address{File: at.File, Exchange: ex.ID, Part: at.Part, Frame: -1}
		c.remarkUndecoded(ex)
		return c.add(address.String(), contract.NewTranscript(ex.ID, tr, defs))
	}

	// An address without an exchange means all of them; damage is reported after what could be read.
	return c.with(at.File, "", func(capture *query.Capture) error {
		if at.Exchange == 0 {
			return capture.EachTranscript(c.ctx, o, add)
		}
		ex, tr, damage := capture.Transcript(c.ctx, at, o)
		if ex == nil {
			return damage
		}
		if err := add(ex, tr); err != nil {
			return err
		}
		return damage
	})
}
