package standin

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"connectrpc.com/connect"
)

// coldScript asks for two calls in a row and two at once.
const coldScript = `{"thinking":"Hm."},{"text":"I look. "},
	{"tool":{"name":"mcp","as":"a","args":{"name":"exec_command","args":{"cmd":"one"}}}},
	{"tokens":3},
	{"tool":{"name":"read","as":"b","args":{"path":"two"}}},
	{"tools":{"calls":[
		{"name":"mcp","as":"c","args":{"name":"exec_command","args":{"cmd":"three"}}},
		{"name":"mcp","as":"d","args":{"name":"exec_command","args":{"cmd":"four"}}}]}},
	{"text":"a=${a.text} b=${b.text} c=${c.text} d=${d.text} (${answer})"},
	{"checkpoint":{}},{"turn_ended":{}}`

// call and result are messages of a transcript.
func call(id, name, args string) string {
	return fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool-call","toolCallId":%q,"toolName":%q,"args":%s}]}`, id, name, args)
}

func result(id, text string) string {
	return fmt.Sprintf(`{"role":"tool","content":[{"type":"tool-result","toolCallId":%q,"toolName":"x","result":%q}]}`, id, text)
}

// cold is a run request that goes on with a transcript, and the blobs of its client.
func cold(t *testing.T, action string, messages ...string) (request string, blobs [][]byte) {
	t.Helper()
	var ids []string
	for _, m := range messages {
		id := sha256.Sum256([]byte(m))
		ids = append(ids, base64.StdEncoding.EncodeToString(id[:]))
		blobs = append(blobs, []byte(m))
	}
	roots, err := json.Marshal(ids)
	if err != nil {
		t.Fatal(err)
	}
	return `{"conversationState":{"rootPromptMessagesJson":` + string(roots) + `},"action":` + action + `}`, blobs
}

func TestColdContinuationGoesOnAfterTheLastResult(t *testing.T) {
	t.Parallel()
	const resume = `{"resumeAction":{}}`
	user := `{"role":"user","content":[{"type":"text","text":"go"}]}`
	one := []string{user, call("1", "exec_command", `{"cmd":"one"}`), result("1", "ONE")}
	two := append(one[:3:3], call("2", "view", `{}`), result("2", "TWO"))
	four := append(two[:5:5],
		`{"role":"assistant","content":[{"type":"tool-call","toolCallId":"3","toolName":"exec_command","args":{"cmd":"three"}},{"type":"tool-call","toolCallId":"4","toolName":"exec_command","args":{"cmd":"four"}}]}`,
		result("4", "FOUR"), result("3", "THREE"))
	for _, c := range []struct {
		name     string
		action   string
		messages []string
		execs    int
		want     string
	}{
		{"none", resume, []string{user}, 4, "I look. a=live b=package retry\n\nfunc Backoff() {} c=live d=live (I look. )"},
		{"one", resume, one, 3, "a=ONE b=package retry\n\nfunc Backoff() {} c=live d=live (I look. )"},
		{"two", resume, two, 2, "a=ONE b=TWO c=live d=live (I look. )"},
		{"one of two at once", resume, four[:7], 1, "a=ONE b=TWO c=live d=FOUR (I look. )"},
		{"all", resume, four, 0, "a=ONE b=TWO c=THREE d=FOUR (I look. )"},
		{"simulated", `{"userMessageAction":{"userMessage":{"text":"continue","isSimulatedMsg":true}}}`, four, 0, "a=ONE b=TWO c=THREE d=FOUR (I look. )"},
		{"more results than calls", resume, append(four[:8:8], call("5", "exec_command", `{}`), result("5", "FIVE")), 0, "a=ONE b=TWO c=THREE d=FOUR (I look. )"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			request, blobs := cold(t, c.action, c.messages...)
			p := &player{prompt: "x", request: request, kept: blobs, tools: map[string]string{"exec_command": `{"success":{"content":[{"text":{"text":"live"}}]}}`}}
			s := start(t, Options{Script: oneTurn(coldScript)})
			p.request = strings.TrimSuffix(p.request, "}") + "," + strings.TrimPrefix(weatherTool("mcpTools"), "{")
			got, err := run(t, s, p)
			if err != nil || answerOf(got) != c.want {
				t.Errorf("answer %q, %v, want %q", answerOf(got), err, c.want)
			}
			if n := s.Stats(); n.Execs.Asked != c.execs || n.KV.Asked != len(c.messages) || n.KV.Answered != n.KV.Asked {
				t.Errorf("stats %+v, want %d execs and %d blobs", n, c.execs, len(c.messages))
			}
		})
	}
}

func TestHistoryOfANewPrompt(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Script: []byte(`{"v":1,"turns":[
		{"steps":[{"text":"first"},{"turn_ended":{}}]},
		{"steps":[{"text":"second of ${system}\n${history}"},{"turn_ended":{}}]}]}`)})
	request, blobs := cold(t, `{}`, `{"role":"user","content":"hello"}`, `{"role":"assistant","content":[{"type":"reasoning","text":"A greeting."},{"type":"text","text":"hi"}]}`,
		`{"role":"user","content":[{"type":"image","image":"aGk=","mediaType":"image/png"}]}`)
	request = strings.TrimSuffix(request, "}") + `,"customSystemPrompt":"Be kind."}`
	for round := range 2 {
		got, err := run(t, s, &player{prompt: "and now?", request: request, kept: blobs})
		const want = "second of Be kind.\nuser: hello\nassistant thinks: A greeting.\nassistant: hi\nuser shows: image/png, 2 bytes, sha256 8f434346648f6b96df89dda901c5176b10a6d83961dd3c1ac88b59b2dc327aa4"
		if err != nil || answerOf(got) != want {
			t.Errorf("answer %q, %v, want %q", answerOf(got), err, want)
		}
		// The server asks for each blob once.
		if n := s.Stats().KV.Asked; n != 3 {
			t.Errorf("round %d: %d blobs were asked for, want 3", round, n)
		}
	}
}

func TestColdContinuationErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, message string
		lost          bool
		code          connect.Code
		want          string
	}{
		{"lost blob", `{"role":"user","content":"x"}`, true, connect.CodeDataLoss, "the client gave 0 bytes back"},
		{"no user", `{"role":"system","content":"x"}`, false, connect.CodeInvalidArgument, "there is no prompt to answer"},
		{"bad role", `{"role":"robot","content":"x"}`, false, connect.CodeInvalidArgument, `root_prompt_messages_json[0]: history: role "robot"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, Options{Script: oneTurn(`{"turn_ended":{}}`)})
			request, blobs := cold(t, `{"resumeAction":{}}`, c.message)
			if c.lost {
				blobs = nil
			}
			if _, err := run(t, s, &player{prompt: "x", request: request, kept: blobs}); connect.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %v: %s", err, c.code, c.want)
			}
		})
	}
}

func TestImagesOfThePrompt(t *testing.T) {
	t.Parallel()
	s := start(t, Options{})
	sum := sha256.Sum256([]byte("blob"))
	image := func(fields string) string {
		return `{"action":{"userMessageAction":{"userMessage":{"selectedContext":{"selectedImages":[` + fields + `]}}}}}`
	}
	for fields, want := range map[string]string{
		``: "I see no images.",
		`{"data":"aGk=","mimeType":"image/png"},{"blobId":"` + base64.StdEncoding.EncodeToString(sum[:]) + `","mimeType":"image/jpeg"}`: "I see image/png, 2 bytes, sha256 8f434346648f6b96df89dda901c5176b10a6d83961dd3c1ac88b59b2dc327aa4; " +
			fmt.Sprintf("image/jpeg, 4 bytes, sha256 %x.", sum),
		`{"blobIdWithData":{"data":"aGk="},"mimeType":"image/gif"}`: "I see image/gif, 2 bytes, sha256 8f434346648f6b96df89dda901c5176b10a6d83961dd3c1ac88b59b2dc327aa4.",
	} {
		if s.api.Message("agent.v1.SelectedImage").Fields().Len() == 0 {
			t.Skip("proto/ has no fields of SelectedImage")
		}
		got, err := run(t, s, &player{prompt: "image demo", request: image(fields), kept: [][]byte{[]byte("blob")}})
		if err != nil || answerOf(got) != want {
			t.Errorf("answer %q, %v, want %q", answerOf(got), err, want)
		}
	}
}
