// Package fronttest tests front ends of the gateway: a core that plays scripted turns,
// and a check that an answer has just the members of the official client's types.
package fronttest

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"unwire/replay/agent/turn"
	"unwire/replay/gateway/front"
)

// A Core is a fake of front.Core for tests: each call of Turn plays the next of some scripts.
type Core struct {
	// mu guards the fields below.
	mu sync.Mutex

	// scripts are the scripts that were not played yet.
	scripts [][]any

	// requests are the requests received so far.
	requests []*turn.Request

	// closed is the number of turns that were closed.
	closed int
}

// NewCore returns a core that plays the scripts. A step of a script is a turn.Event, an
// error that ends the turn, a time.Duration to wait, or a channel to wait for.
func NewCore(scripts ...[]any) *Core { return &Core{scripts: scripts} }

// Script returns its arguments, the steps of a script, as a slice.
func Script(steps ...any) []any { return steps }

// Requests returns the requests received so far.
func (c *Core) Requests() []*turn.Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.requests)
}

// Closed returns the number of turns that were closed.
func (c *Core) Closed() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// Models returns a single model, composer-1, with the alias gpt-5.
func (c *Core) Models(context.Context) ([]turn.Model, error) {
	return []turn.Model{{ID: "composer-1", Name: "Composer 1", Aliases: []string{"gpt-5", "composer-1"}}}, nil
}

// Model returns the model composer-1 for its id or its alias.
func (c *Core) Model(ctx context.Context, name string) (turn.Model, error) {
	models, _ := c.Models(ctx)
	if name == models[0].ID || slices.Contains(models[0].Aliases, name) {
		return models[0], nil
	}
	return turn.Model{}, &turn.Error{Kind: turn.NotFound, Param: "model", Code: "model_not_found", Message: fmt.Sprintf("there is no model %q", name)}
}

// Turn plays the next script. A script that begins with an error refuses the request.
func (c *Core) Turn(_ context.Context, r *turn.Request) (front.Turn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests = append(c.requests, r)
	if len(c.scripts) == 0 {
		return nil, &turn.Error{Kind: turn.Internal, Message: "there is no script for this turn"}
	}
	steps := c.scripts[0]
	c.scripts = c.scripts[1:]
	if err, ok := steps[0].(error); ok {
		return nil, err
	}
	return &play{core: c, steps: steps}, nil
}

// A play is a turn that plays a script.
type play struct {
	// core is the Core that plays the script.
	core *Core

	// steps are the steps that are left.
	steps []any

	// wakeAt is the time at which the current waiting step ends; zero if there is none.
	wakeAt time.Time
}

// Next returns the next event of the script, after waiting as the script says.
func (p *play) Next(ctx context.Context) (turn.Event, error) {
	for len(p.steps) > 0 {
		// The deadline survives an interrupted Next, so that a second call waits only for the rest.
		switch step := p.steps[0].(type) {
		case time.Duration:
			if p.wakeAt.IsZero() {
				p.wakeAt = time.Now().Add(step)
			}
			select {
			case <-time.After(time.Until(p.wakeAt)):
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			p.wakeAt = time.Time{}
		case chan struct{}:
			select {
			case <-step:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		case error:
			return nil, step
		case turn.Event:
			p.steps = p.steps[1:]
			return step, nil
		}
		p.steps = p.steps[1:]
	}
	return nil, io.EOF
}

// Close counts the turn as closed.
func (p *play) Close() {
	p.core.mu.Lock()
	defer p.core.mu.Unlock()
	p.core.closed++
}

// Strict fails the test if a response, decoded by an official client library to v, lacks a member that
// its type requires, or has one that the type does not define, at any depth. allow are the names of
// additional members that are correct.
func Strict(t testing.TB, v any, allow ...string) {
	t.Helper()
	s := strict{t: t, allow: allow}
	s.walk(reflect.ValueOf(v), reflect.TypeOf(v).String())
}

// A strict compares decoded responses with the types of a client library; see Strict.
type strict struct {
	// t is the test that fails on a difference.
	t testing.TB

	// allow are the names of additional members that are correct.
	allow []string
}

// walk checks the value v, which is at path, and all values in it.
func (s strict) walk(v reflect.Value, path string) {
	s.t.Helper()
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			s.walk(v.Elem(), path)
		}
	case reflect.Slice:
		for i := range v.Len() {
			s.walk(v.Index(i), fmt.Sprintf("%s[%d]", path, i))
		}
	case reflect.Struct:
		s.walkStruct(v, path)
	}
}

// walkStruct checks a struct of a client library. Its field JSON records which members were present,
// and those that the type does not define.
func (s strict) walkStruct(v reflect.Value, path string) {
	s.t.Helper()
	meta := v.FieldByName("JSON")
	if !meta.IsValid() {
		return
	}
	extra := meta.FieldByName("ExtraFields")
	// A union has one variant at a time, which its method AsAny returns.
	if !extra.IsValid() { // a union
		if as := v.MethodByName("AsAny"); as.IsValid() {
			variant := as.Call(nil)[0]
			if variant.IsNil() {
				s.t.Errorf("%s is of no known variant", path)
				return
			}
			s.walk(variant, path+"."+variant.Elem().Type().Name())
		}
		return
	}

	// Members that the SDK does not know are mistakes of ours, unless they are allowed explicitly.
	for _, name := range extra.MapKeys() {
		if !slices.Contains(s.allow, name.String()) {
			s.t.Errorf("%s has the unknown member %s", path, name)
		}
	}
	for i := range v.NumField() {
		field := v.Type().Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		present := meta.FieldByName(field.Name)
		if name == "" || name == "-" || !present.IsValid() {
			continue
		}
		raw := present.MethodByName("Raw").Call(nil)[0].String()
		// A constant member is always required.
		_, constant := field.Tag.Lookup("default")
		switch {
		case raw == "" && (constant || field.Tag.Get("api") == "required"):
			s.t.Errorf("%s lacks the required member %s", path, name)
		case raw != "" && raw != "null" && !present.MethodByName("Valid").Call(nil)[0].Bool():
			s.t.Errorf("%s.%s has the wrong type: %s", path, name, raw)
		case raw != "" && raw != "null":
			s.walk(v.Field(i), path+"."+name)
		}
	}
}

// Ids and times differ each time.
var (
	ids   = regexp.MustCompile(`\b(chatcmpl-|resp_|msg_|fc_|ctc_|rs_)[A-Z2-7]{26}\b`)
	times = regexp.MustCompile(`"(created|created_at|completed_at)":[0-9]+`)
)

var update = flag.Bool("update", false, "write the goldens")

// Golden compares a response with a golden file. Before that, its ids are replaced by numbers in the
// order of their first occurrence, and its times by 0.
func Golden(t testing.TB, file string, got []byte) {
	t.Helper()

	// Times and ids differ in each run; ids are numbered, so that references between them still
	// count.
	got = times.ReplaceAll(got, []byte(`"${1}":0`))
	numbers := map[string]string{}
	got = ids.ReplaceAllFunc(got, func(id []byte) []byte {
		if numbers[string(id)] == "" {
			prefix := ids.FindSubmatch(id)[1]
			numbers[string(id)] = fmt.Sprintf("%s%d", prefix, len(numbers)+1)
		}
		return []byte(numbers[string(id)])
	})
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (-update writes it); got:\n%s", file, got)
	}
}
