package clientprobe

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/fieldpath"
	"unwire/decode/jsontree"
	"unwire/decode/transcript/shape"
	"unwire/decode/wire"
	"unwire/replay/edit"
	"unwire/replay/live"
	"unwire/replay/mock"
)

// maxFields limits the number of fields in a plan.
const maxFields = 2000

// A Target is a field in the responses of a method that a probe edits.
type Target struct {
	// Method is "/package.Service/Method", or the HTTP method and the path for requests that are not
	// RPCs.
	Method string `json:"method"`

	// Path is the path of the field without list indexes: all elements of a repeated field are edited
	// together.
	Path string `json:"path"`

	// Kind is the apparent type of the field: varint, i32, i64, text, bytes, message, empty, or a JSON
	// type.
	Kind string `json:"kind"`

	// Value is the first recorded value, shortened for display.
	Value string `json:"value"`

	// Messages is the number of recorded messages that have the field.
	Messages int `json:"messages"`

	// Exchange is the first recorded exchange whose answer has the field.
	Exchange int64 `json:"exchange"`

	// Frame is the number of the first frame of that answer with the field.
	Frame int `json:"frame"`

	// Changes are the ways in which the field will be edited, each in a run of its own.
	Changes []Op `json:"changes"`
}

// A SkippedField is a field that is not edited, with the reason.
type SkippedField struct {
	// Method is "/package.Service/Method", or the HTTP method and the path for requests that are not RPCs.
	Method string `json:"method"`

	// Path is the path of the field without list indexes; "" means all fields of some of the method's messages.
	Path string `json:"path,omitempty"`

	// Reason explains why the field is not edited, as a sentence without a full stop.
	Reason string `json:"reason"`
}

// A Plan lists the fields that a probe would edit, and the runs that this takes.
type Plan struct {
	// Targets are the fields to edit, in the order of the recorded responses.
	Targets []Target `json:"fields"`

	// Skipped are fields that are not edited.
	Skipped []SkippedField `json:"skipped"`

	// Runs is the number of planned edited runs, without those that repeat a run to confirm its effect.
	Runs int `json:"runs"`

	// MaxRuns is the largest number of runs that will be made.
	MaxRuns int `json:"max_runs"`

	// Warnings are remarks for the user.
	Warnings []string `json:"warnings,omitempty"`
}

// Plan lists the fields of the responses that the client got in the unedited runs b, or those of all
// recorded responses if b is nil.
//
// Limits: maxFields.
// Errors: ErrNoField; those of reading the capture.
func (p *Probe) Plan(ctx context.Context, b *Baseline) (*Plan, error) {
	p.defaults()
	plan := &Plan{Targets: []Target{}, Skipped: []SkippedField{}, MaxRuns: p.Budget}
	at := map[string]int{}
	shapes := map[string]*shape.Shape{}

	// First all messages of a method decide which of its fields are messages, then each is listed.
	ids := p.answers(b)
	for _, id := range ids {
		ex, err := p.Mock.Recorded(ctx, id)
		if err != nil {
			return nil, err
		}
		addShape(shapes, ex)
	}
	for _, id := range ids {
		ex, err := p.Mock.Recorded(ctx, id)
		if err != nil {
			return nil, err
		}
		p.addExchange(plan, at, shapes[mock.MethodOf(&ex.Exchange)], ex)
	}
	if err := p.checkSelection(plan, shapes); err != nil {
		return nil, err
	}
	for i := range plan.Targets {
		plan.Runs += len(plan.Targets[i].Changes)
	}

	// Without a table, nobody knows what the client would execute.
	if p.Profile == nil || len(p.Profile.Executes) == 0 {
		plan.Warnings = append(plan.Warnings, "no profile lists the messages that ask the client to run something, so probe-client edits these messages like all others")
	}

	// The unedited runs, and the control, which runs twice if it has an effect.
	if all := plan.Runs + max(p.Repeats, 2) + 1; all > p.Budget {
		plan.Warnings = append(plan.Warnings, fmt.Sprintf("the plan has at least %d runs, but the budget is %d, so the last fields of the plan will not be tested", all, p.Budget))
	}
	return plan, nil
}

// ErrNoField is wrapped by the errors of Plan for an entry of Methods or Paths that selects nothing.
var ErrNoField = errors.New("no field is selected")

// checkSelection checks that each entry of Methods and Paths selects something. shapes has the methods of the answers.
//
// Errors: ErrNoField.
func (p *Probe) checkSelection(plan *Plan, shapes map[string]*shape.Shape) error {
	methods := slices.Sorted(maps.Keys(shapes))
	for _, name := range p.Methods {
		if !slices.ContainsFunc(methods, func(method string) bool { return isMethod(method, name) }) {
			return fmt.Errorf("%w: the method %s has no answers; the methods with answers are %s", ErrNoField, name, strings.Join(methods, ", "))
		}
	}
	// Fields that were skipped are not in the plan, but have another reason to be absent.
	if len(plan.Skipped) > 0 {
		return nil
	}
	for _, path := range p.Paths {
		only := Probe{Paths: []string{path}}
		if !slices.ContainsFunc(plan.Targets, func(t Target) bool { return only.selects(t.Path) }) {
			return fmt.Errorf("%w: no answer has a field at the path %s", ErrNoField, path)
		}
	}
	return nil
}

// answers returns the numbers of the recorded exchanges whose responses are edited: those that the first unedited run
// requested, or all if b is nil.
func (p *Probe) answers(b *Baseline) (ids []int64) {
	if b == nil {
		return p.Mock.Exchanges()
	}
	for i := range b.runs[0].requests {
		if id := b.runs[0].requests[i].Exchange; id != 0 && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// addShape adds the messages of an exchange's response to the statistics about the messages of its
// method.
func addShape(shapes map[string]*shape.Shape, ex *decode.Exchange) {
	method := mock.MethodOf(&ex.Exchange)
	if shapes[method] == nil {
		shapes[method] = new(shape.Shape)
	}
	for i := range ex.Frames {
		if f := &ex.Frames[i]; f.Dir == captures.Down && f.Tree != nil && f.End == nil {
			shapes[method].Add(f.Tree)
		}
	}
}

// addExchange adds the fields of an exchange's response to the plan. at maps method and path of a field
// to its index in plan.Targets; s has statistics about the messages of the method.
func (p *Probe) addExchange(plan *Plan, at map[string]int, s *shape.Shape, ex *decode.Exchange) {
	method := mock.MethodOf(&ex.Exchange)
	if len(p.Methods) > 0 && !slices.ContainsFunc(p.Methods, func(name string) bool { return isMethod(method, name) }) {
		return
	}
	for i := range ex.Frames {
		f := &ex.Frames[i]
		if f.Dir != captures.Down || !live.IsMessage(f) || f.Err != nil {
			continue
		}
		if !p.AllowExecute && p.executes(ex, f) {
			plan.skip(SkippedField{Method: method, Reason: "their messages ask the client to run a command; to edit these messages, too, use --allow-execute"})
			continue
		}
		for _, place := range placesOf(f, s) {
			// The first place of a field stands for all of them.
			key := method + "\n" + place.path
			if n, ok := at[key]; ok {
				if t := &plan.Targets[n]; t.Exchange != ex.ID || t.Frame != f.Seq {
					t.Messages++
				}
				continue
			}
			if !p.selects(place.path) {
				continue
			}
			if len(plan.Targets) >= maxFields {
				plan.skip(SkippedField{Method: method, Reason: fmt.Sprintf("the answers have more than %d fields", maxFields)})
				return
			}
			at[key] = len(plan.Targets)
			plan.Targets = append(plan.Targets, Target{
				Method: method, Path: place.path, Kind: place.kind, Value: cut(place.value), Messages: 1,
				Exchange: ex.ID, Frame: f.Seq, Changes: place.changes(),
			})
		}
	}
}

// isMethod reports whether the user's pattern name selects a method. The pattern may be Run, R*,
// Service/Run or pkg.Service/Run.
func isMethod(method, name string) bool {
	name = strings.TrimPrefix(name, "/")
	if ok, err := path.Match(name, method[strings.LastIndexByte(method, '/')+1:]); ok && err == nil {
		return true
	}
	return method == name || strings.HasSuffix(method, "/"+name) || strings.HasSuffix(method, "."+name)
}

// skip lists a field as not edited, unless it is listed already.
func (plan *Plan) skip(s SkippedField) {
	if !slices.Contains(plan.Skipped, s) {
		plan.Skipped = append(plan.Skipped, s)
	}
}

// selects reports whether the field at a path should be edited: whether Paths is empty, or contains the path or that
// of a field around it.
func (p *Probe) selects(path string) bool {
	return len(p.Paths) == 0 || slices.ContainsFunc(p.Paths, func(want string) bool {
		want = edit.WithoutIndexes(want)
		return path == want || strings.HasPrefix(path, want+".")
	})
}

// executes reports whether a frame asks the client to run something, according to the profile.
func (p *Probe) executes(ex *decode.Exchange, f *decode.Frame) bool {
	if p.Profile == nil {
		return false
	}
	paths, all := p.Profile.Executing(ex.Service, ex.RPC)
	if all {
		return true
	}
	for _, path := range paths {
		if f.Tree != nil && hasField(f.Tree, path) || f.Tree == nil && hasMember(f.Data, path) {
			return true
		}
	}
	return false
}

// hasField reports whether a protobuf message has a field at a path of field numbers.
func hasField(t *wire.Tree, path profilePath) bool {
	var p fieldpath.Path
	for _, step := range path {
		p = append(p, fieldpath.Field(step.Number))
	}
	return len(t.Find(p)) > 0
}

// hasMember reports whether a JSON message has a member at a path of names. The result is also true for
// a text that is not JSON, because such a text must not be edited either.
func hasMember(data []byte, path profilePath) bool {
	v, err := jsontree.Parse(data)
	if err != nil {
		return true
	}
	for _, step := range path {
		found := false
		for item := range v.Items() {
			if name := item.Name(); v.Kind() == jsontree.Object && slices.Contains(step.Names, name) {
				v, found = item, true
				break
			}
		}
		if !found {
			return false
		}
	}
	return true
}
