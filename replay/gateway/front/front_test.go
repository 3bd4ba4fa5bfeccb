package front_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"unwire/replay/agent/turn"
	"unwire/replay/gateway/front"
)

func TestParams(t *testing.T) {
	t.Parallel()
	params := front.Params{
		{Name: "model", Treatment: front.Honoured},
		{Name: "n", Treatment: front.Refused, Allowed: []string{"1"}, Note: "unwire gives one answer"},
		{Name: "modalities", Treatment: front.Refused, Allowed: []string{`["text"]`}},
		{Name: "temperature", Treatment: front.Ignored, Allowed: []string{"1"}, Note: "the upstream has no such setting"},
	}
	for _, tt := range []struct {
		body, notes, param string
	}{
		{body: `{"model":"x","n":1,"temperature":1}`},
		{body: `{"n":null,"temperature":null}`},
		{body: `{"n": 1 , "modalities":[ "text" ]}`},
		{body: `{"temperature":0.2}`, notes: "temperature: the upstream has no such setting"},
		{body: `{"seed\n":7}`, notes: `"seed\n": this parameter is unknown, and has no effect`},
		{body: `{"n":2}`, param: "n"},
	} {
		var members map[string]json.RawMessage
		if err := json.Unmarshal([]byte(tt.body), &members); err != nil {
			t.Fatal(err)
		}
		notes, err := params.Check(members)
		if got := strings.Join(notes, "; "); got != tt.notes {
			t.Errorf("%s: notes %q, want %q", tt.body, got, tt.notes)
		}
		if tt.param == "" && err != nil || tt.param != "" && (err == nil || err.Param != tt.param) {
			t.Errorf("%s: error %+v, want one for %q", tt.body, err, tt.param)
		}
	}
}

func TestReadBody(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, body, message string
		kind                turn.Kind
	}{
		{name: "cut", body: `{"model":"x"`, kind: turn.Invalid, message: "not valid JSON at byte 12"},
		{name: "list", body: `[]`, kind: turn.Invalid, message: "must be a JSON object"},
		{name: "null", body: `null`, kind: turn.Invalid, message: "must be a JSON object"},
		{name: "empty", body: ``, kind: turn.Invalid, message: "not valid JSON"},
		{name: "large", body: `{"a":"` + strings.Repeat("x", (20<<20)) + `"}`, kind: turn.TooLarge, message: "20 MB"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := front.ReadBody(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", strings.NewReader(tt.body)))
			if err == nil || err.Kind != tt.kind || !strings.Contains(err.Message, tt.message) {
				t.Errorf("got %+v, want kind %d with %q", err, tt.kind, tt.message)
			}
		})
	}
}

func TestReadBodyThatIsCompressed(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("(\xb5/\xfd"))
	r.Header.Set("Content-Encoding", "zstd")
	_, err := front.ReadBody(httptest.NewRecorder(), r)
	if err == nil || err.Kind != turn.Invalid || !strings.Contains(err.Message, "zstd") {
		t.Errorf("got %+v, want kind Invalid that names zstd", err)
	}
}

func TestMemberNamesThePath(t *testing.T) {
	t.Parallel()
	var v struct {
		Role string `json:"role"`
	}
	err := front.Member(json.RawMessage(`{"role":7}`), "messages.3", &v)
	if err == nil || err.Param != "messages.3.role" || !strings.Contains(err.Message, "must not be a number") {
		t.Errorf("got %+v, want one of messages.3.role", err)
	}
}

func TestDataImage(t *testing.T) {
	t.Parallel()
	large := base64.StdEncoding.EncodeToString(make([]byte, (10<<20)+3))
	for url, code := range map[string]string{
		"data:image/png;base64,aGk=":       "",
		"https://example.com/cat.png":      "invalid_image_url",
		"data:image/png,raw":               "invalid_image_url",
		"data:text/html;base64,aGk=":       "invalid_image",
		"data:image/png;base64,!!":         "invalid_image",
		"data:image/png;base64," + large:   "image_too_large",
		"file:///etc/passwd":               "invalid_image_url",
		"data:image/png;base64,aGk=\nmore": "invalid_image",
	} {
		image, err := front.DataImage(url, "messages.0.content.1")
		switch {
		case code == "" && (err != nil || image.MIME != "image/png" || string(image.Data) != "hi"):
			t.Errorf("%.40s: got %+v, %+v", url, image, err)
		case code != "" && (err == nil || err.Code != code || err.Param == ""):
			t.Errorf("%.40s: got %+v, want the code %s", url, err, code)
		}
	}
}

func TestArguments(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"a":1}`: `{"a":1}`,
		``:        `{}`,
		`{"a":"b`: `{"input":"{\"a\":\"b"}`,
		`[1]`:     `{"input":"[1]"}`,
		`null`:    `{"input":"null"}`,
	} {
		if got := string(front.Arguments(text)); got != want {
			t.Errorf("Arguments(%q) = %s, want %s", text, got, want)
		}
	}
}

// A script is a turn that gives its events with a pause before each.
type script struct {
	events []turn.Event
	pause  time.Duration
	next   time.Time
}

func (s *script) Next(ctx context.Context) (turn.Event, error) {
	if len(s.events) == 0 {
		return nil, io.EOF
	}
	if s.next.IsZero() {
		s.next = time.Now().Add(s.pause)
	}
	select {
	case <-time.After(time.Until(s.next)):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	event := s.events[0]
	s.events, s.next = s.events[1:], time.Time{}
	return event, nil
}

func (s *script) Close() {}

func TestEachReportsSilence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var got []string
		err := front.Each(t.Context(), &script{events: []turn.Event{turn.Text{Text: "a"}, turn.Ended{}}, pause: 25 * time.Second},
			func(e turn.Event) error {
				if text, ok := e.(turn.Text); ok {
					got = append(got, text.Text)
				} else {
					got = append(got, "end")
				}
				return nil
			},
			func() error { got = append(got, "ping"); return nil })
		if err != nil {
			t.Fatal(err)
		}
		if want := []string{"ping", "ping", "a", "ping", "ping", "end"}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

func TestEachEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := front.Each(ctx, &script{events: []turn.Event{turn.Ended{}}, pause: time.Hour}, func(turn.Event) error { return nil }, nil)
		if err == nil || ctx.Err() == nil {
			t.Errorf("got %v, want the context's error", err)
		}
	})
}

func TestEventsOnTheWire(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		e := front.NewEvents(w)
		for _, err := range []error{e.Send("ping", map[string]string{"type": "<ping>"}), e.Comment("wait"), e.Send("", 1), e.SendText("[DONE]")} {
			if err != nil {
				t.Error(err)
			}
		}
	}))
	defer server.Close()
	resp, err := http.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	const want = "event: ping\ndata: {\"type\":\"<ping>\"}\n\n: wait\n\ndata: 1\n\ndata: [DONE]\n\n"
	if string(body) != want {
		t.Errorf("got %q, want %q", body, want)
	}
}
