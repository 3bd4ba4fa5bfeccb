package history_test

import (
	"fmt"
	"strings"
	"testing"

	"unwire/replay/standin/history"
)

// transcript parses messages.
func transcript(t *testing.T, blobs ...string) (list []history.Message) {
	t.Helper()
	for _, blob := range blobs {
		m, err := history.Parse([]byte(blob))
		if err != nil {
			t.Fatalf("%s: %v", blob, err)
		}
		list = append(list, m)
	}
	return list
}

func TestUnfinishedPairsCallsWithResults(t *testing.T) {
	t.Parallel()
	list := transcript(t,
		`{"role":"system","content":"Be brief."}`,
		`{"role":"user","content":"First"}`,
		`{"role":"assistant","content":"Done."}`,
		`{"role":"user","content":[{"type":"text","text":"Second"},{"type":"image","image":"aGk=","mediaType":"image/png"}]}`,
		`{"role":"assistant","content":[{"type":"reasoning","text":"Hm."},{"type":"tool-call","toolCallId":"a","toolName":"read","args":{"path":"x"}},
			{"type":"tool-call","toolCallId":"b","toolName":"read","args":{}},{"type":"tool-call","toolCallId":"lost","toolName":"read","args":{}}]}`,
		`{"role":"tool","content":[{"type":"tool-result","toolCallId":"b","toolName":"read","result":[{"type":"text","text":"two"},{"type":"later"}],"isError":true}]}`,
		`{"role":"tool","content":[{"type":"tool-result","toolCallId":"a","toolName":"read","result":"one"},{"type":"tool-result","toolCallId":"nobody","result":"?"}]}`,
	)
	last := history.Unfinished(list)
	if last == nil || last.Prompt != "Second" || last.Place != 1 || len(last.Images) != 1 || string(last.Images[0].Image) != "hi" || last.Images[0].MIME != "image/png" {
		t.Fatalf("turn %+v", last)
	}
	var got []string
	for _, c := range last.Calls {
		got = append(got, fmt.Sprintf("%s%s=%s %v", c.Name, c.Args, history.Text(c.Result), c.IsError))
	}
	if want := `read{"path":"x"}=one false, read{}=two true`; strings.Join(got, ", ") != want {
		t.Errorf("calls %q, want %q", got, want)
	}
	if n := history.Answered(list); n != 2 {
		t.Errorf("%d answered, want 2", n)
	}
}

func TestUnfinishedWithoutUser(t *testing.T) {
	t.Parallel()
	if last := history.Unfinished(transcript(t, `{"role":"system","content":null}`)); last != nil {
		t.Errorf("a turn was found: %+v", last)
	}
}

func TestPicturesOfResults(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		`"result":"see","experimental_content":[{"type":"text","text":"see"},{"type":"image","image":"aGk=","mediaType":"image/png"}]`: "tool x: see, image/png, 2 bytes",
		`"result":[{"type":"text","text":"see"},{"type":"image","image":"aGk=","mimeType":"image/png"}]`:                               "tool x: see, image/png, 2 bytes",
		`"experimental_content":[{"type":"text","text":"see"}]`:                                                                        "tool x: see, no images",
	} {
		list := transcript(t, `{"role":"tool","content":[{"type":"tool-result","toolCallId":"a","toolName":"x",`+content+`}]}`)
		got := history.Print(list) + ", " + history.Images(list[0].Parts[0].Result)
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", content, got, want)
		}
	}
}

func TestParseErrors(t *testing.T) {
	t.Parallel()
	for blob, want := range map[string]string{
		``:                            "unexpected end of JSON input",
		`{"role":"model"}`:            `role "model" is not known`,
		`{"role":"user","content":7}`: "content: ",
		`{"role":"user","content":[{"type":"image","image":"!"}]}`:                             "content[0]: image: ",
		`{"role":"tool","content":[{"type":"tool-result","result":""}]}`:                       "content[0]: tool-result without a toolCallId",
		`{"role":"tool","content":[{"type":"tool-result","toolCallId":"a","result":{"x":1}}]}`: "content[0]: content: ",
	} {
		if _, err := history.Parse([]byte(blob)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", blob, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"role":"user","content":[{"type":"tool-result","toolCallId":"a","result":[{"type":"text","text":"x"}]}]}`))
	f.Fuzz(func(t *testing.T, blob []byte) {
		if m, err := history.Parse(blob); err == nil {
			history.Unfinished([]history.Message{m})
			history.Answered([]history.Message{m})
		}
	})
}
