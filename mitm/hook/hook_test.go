package hook

import (
	"cmp"
	"context"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"unwire/captures"
	"unwire/decode"
	"unwire/mitm/rewrite"
	"unwire/mitm/rules"
)

// TestMain makes the test's binary a hook, if a test starts it as one.
func TestMain(m *testing.M) {
	switch os.Getenv("UNWIRE_TEST_HOOK") {
	case "":
		os.Exit(m.Run())
	case "reverse":
		// Answer two requests in the opposite order.
		buf := make([]byte, 64<<10)
		seen := ""
		for strings.Count(seen, "\n") < 2 {
			n, err := os.Stdin.Read(buf)
			if err != nil {
				os.Exit(1)
			}
			seen += string(buf[:n])
		}
		_, _ = io.WriteString(os.Stdout, `{"id":2,"action":"drop"}`+"\n"+`{"id":1,"action":"replace","messages":["YQ==","Yg=="],"rule":"two"}`+"\n")
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "silent":
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "nonsense":
		_, _ = io.WriteString(os.Stdout, "{\n")
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "word":
		_, _ = io.WriteString(os.Stdout, `{"id":1,"action":"explode"}`+"\n")
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "gone":
	case "fails":
		_, _ = io.WriteString(os.Stderr, "Traceback:\n  line 3\nValueError: "+strings.Repeat("x", 2*maxLine)+"\n\n")
		os.Exit(3)
	case "killed":
		_, _ = io.WriteString(os.Stderr, "about to end")
		self, _ := os.FindProcess(os.Getpid())
		_ = self.Kill()
		select {}
	case "closes":
		_ = os.Stdout.Close()
		_, _ = io.Copy(io.Discard, os.Stdin)
	}
}

// killedText is the error after the program was killed, as the system describes that.
var killedText = cmp.Or(map[string]string{"windows": "has ended (exit status 1): about to end"}[runtime.GOOS], "has ended (signal: killed): about to end")

func start(t *testing.T, as string) *Hook {
	t.Helper()
	t.Setenv("UNWIRE_TEST_HOOK", as)
	h, err := Start([]string{os.Args[0]}, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

func held() rules.Held {
	return rules.Held{Exchange: &captures.Exchange{ID: 7}, Call: decode.Call{Service: "a.S", RPC: "M"}, Frame: &rewrite.Frame{}, Data: []byte("x")}
}

func TestAnswersInAnyOrder(t *testing.T) {
	h := start(t, "reverse")
	verdicts := make(chan rewrite.Verdict, 2)
	for range 2 {
		go func() {
			v, err := h.Decide(context.Background(), held())
			if err != nil {
				t.Error(err)
			}
			verdicts <- v
		}()
	}
	total, rulesSeen := 0, ""
	for range 2 {
		v := <-verdicts
		total += len(v.Messages)
		rulesSeen += v.Rule + ";"
		if v.Action != rewrite.Replace {
			t.Errorf("%+v", v)
		}
	}
	if total != 2 || !strings.Contains(rulesSeen, "hook: two;") {
		t.Errorf("%d messages by %s", total, rulesSeen)
	}
}

func TestFailures(t *testing.T) {
	for as, want := range map[string]string{
		"nonsense": "invalid JSON", "word": "explode", "gone": "has ended (exit status 0)", "closes": "has closed its stdout",
		"fails": "has ended (exit status 3): ValueError: " + strings.Repeat("x", maxLine-len("ValueError: ")), "killed": killedText,
	} {
		t.Run(as, func(t *testing.T) {
			h := start(t, as)
			v, err := h.Decide(context.Background(), held())
			if v.Action != rewrite.Pass || err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v, %v", v, err)
			}
		})
	}
}

// A frame does not wait for longer than it is held by its exchange.
func TestContext(t *testing.T) {
	h := start(t, "silent")
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	if v, err := h.Decide(ctx, held()); v.Action != rewrite.Pass || err != nil || time.Since(began) > 3*time.Second {
		t.Errorf("%+v, %v after %v", v, err, time.Since(began))
	}
}
