package eval

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// agentProto is the two messages of a stream between an editor and an agent: small
// frames, of which each holds one thing of many.
const agentProto = `syntax = "proto3";
package agent;
message Up {
  message Open { string thread = 1; string model = 3; repeated Turn history = 4; Workspace workspace = 6; map<string, string> headers = 7; optional bool dry_run = 9; }
  message Turn { Role role = 1; repeated Part parts = 2; int64 at_ms = 5; }
  message Part { oneof of { string text = 1; Image image = 2; Outcome outcome = 3; } }
  message Image { string mime = 1; bytes data = 2; uint32 width = 3; uint32 height = 4; }
  message Workspace { string root = 1; repeated string open_files = 2; Cursor cursor = 3; repeated Finding findings = 4; }
  message Cursor { string file = 1; uint32 line = 2; uint32 column = 3; sint32 scroll = 4; }
  message Finding { string file = 1; uint32 line = 2; string message = 3; Severity severity = 4; }
  message Outcome { string call = 1; string output = 2; int32 exit_code = 3; bool truncated = 4; map<string, uint64> timings = 5; }
  enum Role { ROLE_NONE = 0; USER = 1; ASSISTANT = 2; TOOL = 3; }
  enum Severity { SEVERITY_NONE = 0; HINT = 1; WARNING = 2; ERROR = 3; }
  oneof of { Open open = 1; Outcome outcome = 2; bool cancel = 3; int64 ping = 4; Turn say = 5; }
  uint64 seq = 15;
}
message Down {
  message Call { string id = 1; string tool = 2; string arguments = 3; int32 index = 4; }
  message Use { uint32 input = 1; uint32 output = 2; uint32 cached = 3; double cost = 4; }
  message Edit { string file = 1; repeated uint32 lines = 2; repeated Hunk hunks = 3; bytes digest = 4; }
  message Hunk { uint32 start = 1; uint32 length = 2; string text = 3; }
  message Trouble { int32 code = 1; string message = 2; repeated string hints = 3; map<string, string> details = 4; }
  oneof of { string delta = 1; string thought = 2; Call call = 3; Use use = 4; Edit edit = 5; Trouble trouble = 6; bool done = 7; repeated_embedding embedding = 8; }
  message repeated_embedding { repeated float values = 1; }
  uint64 seq = 15;
  string trace = 16;
}
`

var prose = strings.Fields("the of a to we call render handler because cache returns only when its first argument is empty so let me check where that list comes from " +
	"func main() { if err != nil return ctx.Done() } 日志 в файле größer café — 42 `go test` // TODO, which fails: panic")

// agentCorpora is frames of such streams, both ways.
func agentCorpora(t testing.TB) []corpus {
	compiler := protocompile.Compiler{Resolver: &protocompile.SourceResolver{Accessor: protocompile.SourceAccessorFromMap(map[string]string{"agent.proto": agentProto})}}
	files, err := compiler.Compile(context.Background(), "agent.proto")
	if err != nil {
		t.Fatal(err)
	}
	r := newRand(77)
	words := func(n int) string {
		list := make([]string, 1+r.IntN(n))
		for i := range list {
			list[i] = prose[r.IntN(len(prose))]
		}
		return strings.Join(list, " ")
	}
	random := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return b
	}
	file := func() string { return fmt.Sprintf("src/%s/%s.go", prose[r.IntN(20)], prose[r.IntN(30)]) }
	call := func() string { return "call_" + hex.EncodeToString(random(2)) + fmt.Sprint(r.IntN(1e6)) }
	list := func(n int, of func() map[string]any) (out []any) {
		for range r.IntN(n + 1) {
			out = append(out, of())
		}
		return out
	}
	part := func() map[string]any {
		switch r.IntN(8) {
		case 0:
			return map[string]any{"image": map[string]any{"mime": "image/png", "data": []byte("\x89PNG\r\n\x1a\n" + words(30)), "width": 64 << r.IntN(5), "height": 64 * r.IntN(30)}}
		case 1:
			return map[string]any{"outcome": map[string]any{"call": call(), "output": words(60), "exitCode": r.IntN(2) * r.IntN(127), "timings": map[string]any{"wall": fmt.Sprint(r.IntN(5000)), "cpu": fmt.Sprint(r.IntN(900))}}}
		}
		return map[string]any{"text": words(40)}
	}
	turn := func() map[string]any {
		return map[string]any{"role": 1 + r.IntN(3), "parts": append(list(2, part), part()), "atMs": fmt.Sprint(time.UnixMilli(1_770_000_000_000 + r.Int64N(1e9)).UnixMilli())}
	}
	up := func(seq int) map[string]any {
		out := map[string]any{"seq": fmt.Sprint(seq)}
		switch k := r.IntN(12); {
		case seq == 0 || k == 0:
			headers := map[string]any{"x-client": "editor/1." + fmt.Sprint(r.IntN(9))}
			if r.IntN(2) == 0 {
				headers["x-trace"] = hex.EncodeToString([]byte(words(3)))
			}
			open := map[string]any{"thread": call(), "model": []string{"fast-2", "deep-1-mini"}[r.IntN(2)], "history": list(5, turn), "headers": headers, "workspace": map[string]any{
				"root": "/home/u/src", "openFiles": []any{file(), file()}[:r.IntN(3)], "cursor": map[string]any{"file": file(), "line": r.IntN(900), "column": r.IntN(90), "scroll": r.IntN(60) - 30},
				"findings": list(4, func() map[string]any {
					return map[string]any{"file": file(), "line": r.IntN(900), "message": words(12), "severity": 1 + r.IntN(3)}
				}),
			}}
			if r.IntN(3) == 0 {
				open["dryRun"] = r.IntN(2) == 0
			}
			out["open"] = open
		case k < 5:
			out["outcome"] = part()["outcome"]
			if out["outcome"] == nil {
				out["outcome"] = map[string]any{"call": call(), "output": words(90), "truncated": r.IntN(6) == 0}
			}
		case k < 6:
			out["cancel"] = true
		case k < 9:
			out["ping"] = fmt.Sprint(1_770_000_000_000 + r.Int64N(1e9))
		default:
			out["say"] = turn()
		}
		return out
	}
	down := func(seq int) map[string]any {
		out := map[string]any{"seq": fmt.Sprint(seq)}
		if r.IntN(5) == 0 {
			out["trace"] = hex.EncodeToString([]byte(words(9)))
		}
		switch k := r.IntN(30); {
		case k < 15:
			out["delta"] = words(3)
		case k < 20:
			out["thought"] = " " + words(4)
		case k < 24:
			out["call"] = map[string]any{"id": call(), "tool": []string{"read", "grep", "edit", "shell"}[r.IntN(4)], "arguments": `{"path":"` + file() + `"}`, "index": r.IntN(3)}
		case k < 26:
			out["use"] = map[string]any{"input": r.IntN(90000), "output": r.IntN(4000), "cached": r.IntN(3) * 1024, "cost": float64(r.IntN(9000)) / 1e5}
		case k < 27:
			lines := make([]any, 1+r.IntN(6))
			for i := range lines {
				lines[i] = 10*i + r.IntN(700)
			}
			out["edit"] = map[string]any{"file": file(), "lines": lines, "digest": random(20), "hunks": list(3, func() map[string]any {
				return map[string]any{"start": r.IntN(700), "length": r.IntN(20), "text": words(30)}
			})}
		case k < 28:
			out["trouble"] = map[string]any{"code": r.IntN(16), "message": words(8), "hints": []any{words(4), words(3)}[:r.IntN(3)], "details": map[string]any{"reason": words(1)}}
		case k < 29:
			values := make([]any, 16)
			for i := range values {
				values[i] = r.NormFloat64()
			}
			out["embedding"] = map[string]any{"values": values}
		default:
			out["done"] = true
		}
		return out
	}
	var out []corpus
	for _, side := range []struct {
		name string
		make func(int) map[string]any
	}{{"Up", up}, {"Down", down}} {
		md := files[0].Messages().ByName(protoreflect.Name(side.name))
		c := corpus{group: "agent", held: true, name: side.name, truth: md}
		for i := range 300 {
			m := dynamicpb.NewMessage(md)
			text, err := json.Marshal(side.make(i % 40))
			if err == nil {
				err = protojson.Unmarshal(text, m)
			}
			if err != nil {
				t.Fatal(err)
			}
			b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			c.samples = append(c.samples, b)
		}
		out = append(out, c)
	}
	return out
}
