package standin

import (
	"bytes"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/dynamicpb"

	"unwire/replay/standin/codec"
	"unwire/replay/standin/strictjson"
)

//go:embed default.json
var defaultScript []byte

// DefaultScript returns the built-in script as JSON.
func DefaultScript() []byte { return bytes.Clone(defaultScript) }

// Limits of a script.
const (
	maxScriptBytes = 4 << 20
	maxTurns       = 1000
	maxSteps       = 10_000
	maxMS          = 10 * 60 * 1000
	maxHeartbeats  = 10_000
)

// readScript parses a script, copies missing members from the built-in script, and resolves the names
// of methods and messages in it.
func readScript(a *api, data []byte) (*script, error) {
	base := &script{}
	if err := strictjson.Read(defaultScript, base); err != nil {
		return nil, fmt.Errorf("default: %w", err)
	}
	s := base
	if data != nil {
		if len(data) > maxScriptBytes {
			return nil, fmt.Errorf("the script has %d bytes; the limit is %d", len(data), maxScriptBytes)
		}
		s = &script{}
		if err := strictjson.Read(data, s); err != nil {
			return nil, err
		}
		if s.V != 1 {
			return nil, fmt.Errorf("v: the version must be 1, not %d", s.V)
		}
		s.inherit(base)
	}
	return s, s.bind(a)
}

// inherit copies the members that s lacks from base.
func (s *script) inherit(base *script) {
	// The zero value means that the script leaves a member out.
	if s.Compression == nil {
		s.Compression = base.Compression
	}
	if s.SSE == "" {
		s.SSE = base.SSE
	}
	if s.BootstrapMS == 0 {
		s.BootstrapMS = base.BootstrapMS
	}
	if s.AnswerTimeoutMS == 0 {
		s.AnswerTimeoutMS = base.AnswerTimeoutMS
	}
	if s.Gate == nil {
		s.Gate = base.Gate
	}
	if s.SecondRun == "" {
		s.SecondRun = base.SecondRun
	}
	if s.AnnouncedTwice == "" {
		s.AnnouncedTwice = base.AnnouncedTwice
	}
	if s.Appends == nil {
		s.Appends = base.Appends
	}
	if s.Turns == nil {
		s.Turns = base.Turns
	}
	if s.Chats == nil {
		s.Chats = base.Chats
	}

	// Answers are merged, so that a script can replace single methods.
	own := s.Answers
	s.Answers = maps.Clone(base.Answers)
	maps.Copy(s.Answers, own)
}

// bind validates the script, and resolves the names of methods and messages in it.
func (s *script) bind(a *api) error {
	if err := s.bindOptions(a); err != nil {
		return err
	}
	for i := range s.Turns {
		b := binder{api: a, scope: turnScope(), message: a.server, agent: true}
		if err := b.turn(fmt.Sprintf("turns[%d]", i), &s.Turns[i]); err != nil {
			return err
		}
	}
	chat := a.Message("aiserver.v1.StreamUnifiedChatResponse")
	if chat == nil {
		return fmt.Errorf("chats: proto/ has no message aiserver.v1.StreamUnifiedChatResponse")
	}
	for i := range s.Chats {
		b := binder{api: a, scope: turnScope(), message: chat}
		if err := b.turn(fmt.Sprintf("chats[%d]", i), &s.Chats[i]); err != nil {
			return err
		}
	}
	if max(len(s.Turns), len(s.Chats)) > maxTurns {
		return fmt.Errorf("turns: the list has more than %d elements", maxTurns)
	}
	return nil
}

// bindOptions validates the members that are not turns or chats, and resolves the names in them.
func (s *script) bindOptions(a *api) error {
	// Limits keep a test script from blocking the server or using up its memory.
	for i, name := range s.Compression.Names {
		if !codec.Known(name) {
			return fmt.Errorf("compression.names[%d]: must be br, gzip or zstd, not %q", i, name)
		}
	}
	if n := s.Compression.MinBytes; n < 0 || n > maxMessageBytes {
		return fmt.Errorf("compression.min_bytes: must be from 0 to %d, not %d", maxMessageBytes, n)
	}
	if !slices.Contains([]string{"raw", "base64", "connect"}, s.SSE) {
		return fmt.Errorf("sse: must be raw, base64 or connect, not %q", s.SSE)
	}
	if s.Appends.Window < 1 || s.Appends.Window > 10_000 {
		return fmt.Errorf("appends.window: must be from 1 to 10000, not %d", s.Appends.Window)
	}
	if err := times("answer_timeout_ms", s.AnswerTimeoutMS, "bootstrap_ms", s.BootstrapMS, "appends.hold_ms", s.Appends.HoldMS); err != nil {
		return err
	}
	if s.SecondRun != "refuse" && s.SecondRun != "allow" {
		return fmt.Errorf("second_run: must be refuse or allow, not %q", s.SecondRun)
	}
	if s.AnnouncedTwice != "hang" && s.AnnouncedTwice != "allow" {
		return fmt.Errorf("announced_twice: must be hang or allow, not %q", s.AnnouncedTwice)
	}
	if s.Stale != nil {
		if err := s.Stale.bind(a); err != nil {
			return fmt.Errorf("stale.%w", err)
		}
	}
	if s.Gate != nil {
		if versionNumbers(s.Gate.MinVersion) == nil {
			return fmt.Errorf("gate.min_version: %q contains no version number", s.Gate.MinVersion)
		}
		if err := s.Gate.Error.bind(a); err != nil {
			return fmt.Errorf("gate.error: %w", err)
		}
	}
	return nil
}

// times returns an error if one of the times, which are given as pairs of a name and milliseconds, is
// negative or too long.
func times(pairs ...any) error {
	for i := 0; i < len(pairs); i += 2 {
		if ms := pairs[i+1].(int); ms < 0 || ms > maxMS {
			return fmt.Errorf("%s: must be from 0 to %d, not %d", pairs[i], maxMS, ms)
		}
	}
	return nil
}

// bind resolves the error's code and the types of its details. Errors begin with the name of the
// member.
func (f *scriptFault) bind(a *api) error {
	if err := f.code.UnmarshalText([]byte(f.Code)); err != nil {
		return fmt.Errorf("code: %q is not a Connect code", f.Code)
	}
	for i, d := range f.Details {
		md := a.Message(d.Type)
		if md == nil {
			return fmt.Errorf("details[%d].type: proto/ has no message %q", i, d.Type)
		}
		m := dynamicpb.NewMessage(md)
		if d.Value != nil {
			if err := readMessage(d.Value, m); err != nil {
				return fmt.Errorf("details[%d].value: %w", i, err)
			}
		}
		detail, err := connect.NewErrorDetail(m)
		if err != nil {
			return fmt.Errorf("details[%d]: %w", i, err)
		}
		f.details = append(f.details, detail)
	}
	return nil
}

// readMessage parses the JSON form of a message into m. It normalises the text of errors: protojson
// sometimes writes a non-breaking space after "proto:", to discourage comparing them.
func readMessage(data []byte, m *dynamicpb.Message) error {
	err := protojson.Unmarshal(data, m)
	if err != nil {
		text := strings.TrimLeft(strings.TrimPrefix(err.Error(), "proto:"), " \u00a0")
		return fmt.Errorf("%s: %s", m.Descriptor().FullName(), text)
	}
	return nil
}
