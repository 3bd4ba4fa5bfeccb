package replaytext

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"unwire/cmd/internal/term"
	"unwire/replay/probe"
)

// On a terminal, a conclusion that many fields have in common is printed in full once, and each contradiction is.
func TestVerificationsExplainOnce(t *testing.T) {
	t.Parallel()
	v := &probe.Verification{Method: "/a.v1.S/Run"}
	const undecided = "the field is not a string, a message or a repeated number, and the parser reports no errors in others"
	var fields []map[string]string
	for i := range 5 {
		verdict, concluded := probe.Undecided, undecided
		if i >= 3 {
			verdict, concluded = probe.Contradicted, "the server parses the field as a message, and not as a bool or another number"
		}
		fields = append(fields, map[string]string{
			"path": fmt.Sprint(i + 1), "message": "a.v1.Request", "name": fmt.Sprintf("field_%d", i), "type": "bool", "verdict": string(verdict), "concluded": concluded,
		})
	}
	text, err := json.Marshal(map[string]any{"fields": fields})
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, v); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	out := term.New(&b, "never")
	out.TTY, out.Width = true, 80
	if err := Verifications(out, []*probe.Verification{v}, false); err != nil {
		t.Fatal(err)
	}
	printed := strings.Join(strings.Fields(b.String()), " ")
	if n := strings.Count(printed, undecided); n != 1 {
		t.Errorf("the conclusion is printed %d times:\n%s", n, &b)
	}
	if n := strings.Count(printed, "as a bool or another number"); n != 2 {
		t.Errorf("%d contradictions are printed in full:\n%s", n, &b)
	}
}
