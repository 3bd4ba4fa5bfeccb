package demo

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/replay/standin"
)

const token = "made-up-token-0815"

func startStandin(t *testing.T, o standin.Options) *standin.Server {
	t.Helper()
	o.Token = token
	s, err := standin.New(o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		<-done
	})
	return s
}

// scenarioLines are what each client must have printed, in this order.
var scenarioLines = []string{
	"models  composer-1, sonnet-4.5, gpt-5.1-codex",
	"agent   prompt: What does Backoff",
	"agent   stored ",
	"agent   thinking: The question is about one function.",
	"agent   tool call: read internal/retry/backoff.go: 16 lines",
	"agent   thinking: The loop looks before it doubles",
	"agent   stored ",
	"agent   returned ",
	"agent   answer: `Backoff` says how long to wait before a retry.",
	"agent   the answer ended after ",
	"chat    answer: The older chat endpoint still answers, but",
	"chat    ended with resource_exhausted: Error (ERROR_RATE_LIMITED; Slow down; ",
}

func checkLines(t *testing.T, out string) {
	t.Helper()
	rest := out
	for _, want := range scenarioLines {
		_, after, ok := strings.Cut(rest, want)
		if !ok {
			t.Fatalf("no %q, or not in its place, in\n%s", want, out)
		}
		rest = after
	}
	if !strings.Contains(out, "The file is 16 lines long") {
		t.Errorf("the answer does not speak of the file that was read:\n%s", out)
	}
	if strings.Contains(out, token) {
		t.Errorf("the token is in the output:\n%s", out)
	}
}

func TestGoClientPlaysTheScenario(t *testing.T) {
	s := startStandin(t, standin.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out bytes.Buffer
	if err := RunClient(ctx, ClientOptions{URL: s.URL(), Token: token, CAFile: s.CAFile, Out: &out}); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	checkLines(t, out.String())
}

func TestDescriptorSetIsWhole(t *testing.T) {
	data, err := descriptorSet()
	if err != nil {
		t.Fatal(err)
	}
	set := &descriptorpb.FileDescriptorSet{}
	if err := proto.Unmarshal(data, set); err != nil {
		t.Fatal(err)
	}
	files, err := protodesc.NewFiles(set) // fails where an import is missing
	if err != nil {
		t.Fatal(err)
	}
	if _, err := files.FindDescriptorByName("agent.v1.AgentService"); err != nil {
		t.Error(err)
	}
	seen := map[string]bool{}
	for _, f := range set.File {
		for _, dep := range f.Dependency {
			if !seen[dep] {
				t.Errorf("%s comes before its import %s", f.GetName(), dep)
			}
		}
		seen[f.GetName()] = true
	}
}

// The one published value: see RESEARCH.md#checksum.
func TestChecksumTime(t *testing.T) {
	if got := checksumTime(1769525 * 1_000_000); got != "pZGTi4-_" {
		t.Errorf("checksumTime: %q", got)
	}
}

func TestIdentityFollowsFromToken(t *testing.T) {
	sc, err := loadScenario()
	if err != nil {
		t.Fatal(err)
	}
	a, b, other := http.Header{}, http.Header{}, http.Header{}
	(&identity{token: "x"}).headers(a, sc, "s", 0)
	(&identity{token: "x"}).headers(b, sc, "s", 0)
	(&identity{token: "y"}).headers(other, sc, "s", 0)
	for _, name := range []string{"x-request-id", "x-cursor-checksum"} {
		if a.Get(name) != b.Get(name) || a.Get(name) == other.Get(name) || a.Get(name) == "" {
			t.Errorf("%s: %q, %q, for another token %q", name, a.Get(name), b.Get(name), other.Get(name))
		}
	}
}
