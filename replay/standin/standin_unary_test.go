package standin

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/dynamicpb"
)

const procedureModels = "/agent.v1.AgentService/GetUsableModels"

// post sends a body and returns the status and the body that came back.
func post(t *testing.T, hc *http.Client, url, contentType, body string, edit ...func(http.Header)) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", contentType)
	headers(req.Header)
	for _, e := range edit {
		e(req.Header)
	}
	resp, err := hc.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

func TestModelsInBothCodecs(t *testing.T) {
	s := start(t, Options{})
	for _, http2 := range []bool{true, false} {
		for _, o := range []connect.ClientOption{connect.WithProtoJSON(), connect.WithClientOptions(), connect.WithGRPCWeb()} {
			c, md := rpc(t, s, httpClient(t, s, http2), procedureModels, o)
			req := connect.NewRequest(dynamicpb.NewMessage(md.Input()))
			headers(req.Header())
			resp, err := c.CallUnary(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			list := get(resp.Msg, "models").List()
			if list.Len() != 3 || get(list.Get(0).Message(), "model_id").String() != "composer-1" {
				t.Errorf("models: %v", resp.Msg)
			}
		}
	}
	_, first := post(t, httpClient(t, s, true), s.URL()+procedureModels, "application/json", "{}")
	if strings.Contains(first, ": ") || !json.Valid([]byte(first)) {
		t.Errorf("JSON is not compact: %s", first)
	}
}

// The calls of a CLI's start are those of facts about it; each must be answered
// to an empty body in both codecs.
func TestStartCalls(t *testing.T) {
	s := start(t, Options{})
	hc := httpClient(t, s, true)
	for _, procedure := range []string{
		"/aiserver.v1.ServerConfigService/GetServerConfig",
		"/aiserver.v1.DashboardService/GetTeamAdminSettingsOrEmptyIfNotInTeam",
		"/aiserver.v1.DashboardService/ListMarketplaces",
		"/aiserver.v1.DashboardService/GetUserPrivacyMode",
		"/aiserver.v1.DashboardService/GetMe",
		"/aiserver.v1.DashboardService/GetGlobalCommands",
		"/aiserver.v1.DashboardService/GetManagedSkills",
		"/aiserver.v1.DashboardService/GetPlanInfo",
		"/aiserver.v1.DashboardService/GetCurrentPeriodUsage",
		"/aiserver.v1.AnalyticsService/BootstrapStatsig",
		"/aiserver.v1.AnalyticsService/TrackEvents",
		"/aiserver.v1.AnalyticsService/SubmitLogs",
		"/aiserver.v1.AnalyticsService/Batch",
		"/aiserver.v1.AiService/GetUsableModels",
		"/aiserver.v1.AiService/GetDefaultModelForCli",
		"/aiserver.v1.AiService/NameAgent",
		"/aiserver.v1.AiService/AvailableModels",
		"/agent.v1.AgentService/GetUsableModels",
		"/agent.v1.AgentService/GetDefaultModelForCli",
		"/agent.v1.AgentService/NameAgent",
		"/agent.v1.AgentService/AvailableModels",
	} {
		if status, body := post(t, hc, s.URL()+procedure, "application/proto", ""); status != 200 {
			t.Errorf("%s: %d %s", procedure, status, body)
		}
		status, body := post(t, hc, s.URL()+procedure, "application/json", "{}")
		if status != 200 || !json.Valid([]byte(body)) {
			t.Errorf("%s: %d %s", procedure, status, body)
		}
		if strings.HasSuffix(procedure, "GetServerConfig") && strings.Count(body, s.URL()) != 2 {
			t.Errorf("%s: %s, want the server's own URL twice", procedure, body)
		}
	}
	if status, body := post(t, hc, s.URL()+"/v1/traces", "application/json", "{}"); status != 200 {
		t.Errorf("/v1/traces: %d %s", status, body)
	}
}

func TestExchangeKey(t *testing.T) {
	s := start(t, Options{Token: testToken})
	hc := httpClient(t, s, false)
	status, body := post(t, hc, s.URL()+"/auth/exchange_user_api_key", "application/json", "{}")
	var got struct{ AccessToken, RefreshToken, AuthID string }
	if err := json.Unmarshal([]byte(body), &got); err != nil || status != 200 {
		t.Fatalf("%d %s: %v", status, body, err)
	}
	if got.AccessToken != testToken || got.RefreshToken == "" || got.AuthID == "" {
		t.Errorf("got %+v", got)
	}
	status, _ = post(t, hc, s.URL()+"/auth/exchange_user_api_key", "application/json", "{}", func(h http.Header) { h.Del("authorization") })
	if status != 401 {
		t.Errorf("without a key: %d", status)
	}
}

func TestCredentials(t *testing.T) {
	s := start(t, Options{Token: testToken})
	hc := httpClient(t, s, true)
	for name, c := range map[string]struct {
		edit func(http.Header)
		text string
	}{
		"none":    {func(h http.Header) { h.Del("authorization") }, "the request has no bearer token"},
		"basic":   {func(h http.Header) { h.Set("authorization", "Basic eDp5") }, "the request has no bearer token"},
		"another": {func(h http.Header) { h.Set("authorization", "Bearer tok-0") }, "not the one that the stand-in accepts"},
	} {
		status, body := post(t, hc, s.URL()+procedureModels, "application/json", "{}", c.edit)
		var e struct {
			Code, Message string
			Details       []struct{ Type string }
		}
		if err := json.Unmarshal([]byte(body), &e); err != nil {
			t.Fatalf("%s: %s: %v", name, body, err)
		}
		if status != 401 || e.Code != "unauthenticated" || !strings.Contains(e.Message, c.text) || len(e.Details) != 1 || e.Details[0].Type != "aiserver.v1.ErrorDetails" {
			t.Errorf("%s: %d %s", name, status, body)
		}
		// A stream is answered 200; the verdict is in its end.
		status, body = post(t, hc, s.URL()+procedureRun, "application/connect+proto", "", c.edit)
		if status != 200 || !strings.Contains(body, `"code":"unauthenticated"`) || body[0] != 2 {
			t.Errorf("%s: stream: %d %q", name, status, body)
		}
	}
}

func TestAnyTokenWillDoWithoutOne(t *testing.T) {
	s := start(t, Options{})
	hc := httpClient(t, s, true)
	if status, body := post(t, hc, s.URL()+procedureModels, "application/json", "{}"); status != 200 {
		t.Errorf("%d %s", status, body)
	}
	if status, _ := post(t, hc, s.URL()+procedureModels, "application/json", "{}", func(h http.Header) { h.Del("authorization") }); status != 401 {
		t.Errorf("without a token: %d", status)
	}
}

func TestVersionGate(t *testing.T) {
	s := start(t, Options{Script: []byte(`{"v":1,"gate":{"min_version":"cli-2026.01.09","error":{"code":"permission_denied","message":"Update Required",
		"details":[{"type":"aiserver.v1.ErrorDetails","value":{"error":"ERROR_OUTDATED_CLIENT"}}]}}}`)})
	hc := httpClient(t, s, true)
	for version, ok := range map[string]bool{
		"cli-2026.01.09-231024f": true, "cli-2026.02.01-abc": true, "cli-2027": true,
		"cli-2025.11.25-d5b3271": false, "2.0.77": false, "": false, "new": false, "cli-2026.1": false,
	} {
		status, body := post(t, hc, s.URL()+procedureModels, "application/json", "{}", func(h http.Header) { h.Set("x-cursor-client-version", version) })
		if ok && status != 200 || !ok && (status != 403 || !strings.Contains(body, "Update Required")) {
			t.Errorf("%q: %d %s", version, status, body)
		}
	}
}

func TestBidiOverHTTP1Is464(t *testing.T) {
	s := start(t, Options{})
	for _, procedure := range []string{procedureRun, "/aiserver.v1.ChatService/StreamUnifiedChatWithTools"} {
		if status, body := post(t, httpClient(t, s, false), s.URL()+procedure, "application/connect+proto", ""); status != 464 || body != "" {
			t.Errorf("%s: %d %q", procedure, status, body)
		}
	}
}

func TestWhatIsNotThere(t *testing.T) {
	s := start(t, Options{Script: []byte(`{"v":1,"answers":{"/agent.v1.AgentService/NameAgent":null,"/agent.v1.AgentService/Run":null,"/aiserver.v1.Later/New":{}}}`)})
	hc := httpClient(t, s, true)
	for _, c := range []struct {
		procedure, contentType, body string
		status                       int
		text                         string
	}{
		{"/agent.v1.AgentService/NoSuchMethod", "application/proto", "", 404, "404"},
		{"/", "application/json", "{}", 404, "404"},
		{"/agent.v1.AgentService/NameAgent", "application/json", "{}", 501, `"code":"unimplemented","message":"not implemented"`},
		{"/aiserver.v1.AiService/GetPrivacyMode", "application/json", "{}", 501, `"message":"aiserver.v1.AiService.GetPrivacyMode is not implemented"`},
		{procedureRun, "application/connect+json", "\x00\x00\x00\x00\x02{}", 200, `"code":"unimplemented"`},
		{"/aiserver.v1.Later/New", "application/proto", "", 200, ""},
		{"/aiserver.v1.AiService/StreamChat", "application/connect+json", "\x00\x00\x00\x00\x02{}", 200, `"code":"failed_precondition"`},
		{"/aiserver.v1.ChatService/StreamUnifiedChatWithToolsPoll", "application/connect+json", "\x00\x00\x00\x00\x02{}", 200, `"code":"unimplemented"`},
		{procedureModels, "application/connect+proto", "", 415, ""},
		{procedureRun, "application/proto", "", 415, ""},
	} {
		status, body := post(t, hc, s.URL()+c.procedure, c.contentType, c.body)
		if status != c.status || !strings.Contains(body, c.text) {
			t.Errorf("%s: %d %q, want %d with %q", c.procedure, status, body, c.status, c.text)
		}
	}
}

// The parse error comes first: it is what a probe reads.
func TestParseErrorsComeBeforeCredentials(t *testing.T) {
	s := start(t, Options{Token: testToken})
	hc := httpClient(t, s, true)
	anonymous := func(h http.Header) { h.Del("authorization") }
	for _, c := range []struct{ contentType, body, text string }{
		{"application/proto", "\x07", "unmarshal into *agentv1.GetUsableModelsRequest: proto:"},
		{"application/proto", "\x0a\x01\xff", "invalid UTF-8"},
		{"application/json", `{"customModelIds":1}`, "unmarshal into *agentv1.GetUsableModelsRequest: proto:"},
	} {
		status, body := post(t, hc, s.URL()+procedureModels, c.contentType, c.body, anonymous)
		if status != 400 || !strings.Contains(body, "invalid_argument") || !strings.Contains(strings.ReplaceAll(body, "\u00a0", " "), c.text) {
			t.Errorf("%q: %d %s", c.body, status, body)
		}
	}
}

func chatRequest(t *testing.T, s *Server, text string) *message {
	return build(t, s.api.Message("aiserver.v1.StreamUnifiedChatRequest"), `{"conversation":[{"text":"`+text+`"}],"conversationId":"c"}`)
}

func TestChatStreamsAndEndsInAnError(t *testing.T) {
	s := start(t, Options{})
	c, _ := rpc(t, s, httpClient(t, s, false), "/aiserver.v1.ChatService/StreamUnifiedChat")
	req := connect.NewRequest(chatRequest(t, s, "hello"))
	headers(req.Header())
	stream, err := c.CallServerStream(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	var text, thinking string
	for stream.Receive() {
		text += get(stream.Msg(), "text").String()
		thinking += get(stream.Msg(), "thinking", "text").String()
	}
	wantCode(t, stream.Err(), connect.CodeResourceExhausted, "Error")
	if text != "The older chat endpoint still answers, but " || thinking != "A short question; a short answer will do." {
		t.Errorf("text %q, thinking %q", text, thinking)
	}
}

func TestChatWithToolsIsWrapped(t *testing.T) {
	s := start(t, Options{Script: []byte(`{"v":1,"chats":[{"steps":[{"text":"You said ${prompt}."},{"send":{"serverBubbleId":"b-${conversation_id}"}},{"raw":"f83e01"},{"wait":{"ms":1}}]}]}`)})
	c, md := rpc(t, s, httpClient(t, s, true), "/aiserver.v1.ChatService/StreamUnifiedChatWithTools")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	stream := c.CallBidiStream(ctx)
	headers(stream.RequestHeader())
	ask := dynamicpb.NewMessage(md.Input())
	within(ask, "stream_unified_chat_request").Set(md.Input().Fields().ByName("stream_unified_chat_request").Message().Fields().ByName("conversation"),
		get(chatRequest(t, s, "hi"), "conversation"))
	set(within(ask, "stream_unified_chat_request"), "conversation_id", "7")
	if err := stream.Send(ask); err != nil {
		t.Fatal(err)
	}
	if err := stream.CloseRequest(); err != nil {
		t.Fatal(err)
	}
	var list []*message
	for {
		m, err := stream.Receive()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, m)
	}
	if len(list) != 3 {
		t.Fatalf("%d messages", len(list))
	}
	if text := get(list[0], "stream_unified_chat_response", "text").String(); text != "You said hi." {
		t.Errorf("text %q", text)
	}
	if id := get(list[1], "stream_unified_chat_response", "server_bubble_id").String(); id != "b-7" {
		t.Errorf("bubble %q", id)
	}
	if !bytes.Equal(list[2].GetUnknown(), []byte{0xf8, 0x3e, 1}) {
		t.Errorf("raw bytes %x", list[2].GetUnknown())
	}
}

func TestBufferingCheck(t *testing.T) {
	s := start(t, Options{})
	hc := httpClient(t, s, false)
	status, body := post(t, hc, s.URL()+procedureStreamSSE, "application/connect+json", "\x00\x00\x00\x00\x11{\"payload\":\"foo\"}")
	if status != 200 || strings.Count(body, `{"payload":"foo"}`) != 5 || !strings.HasSuffix(body, "\x02\x00\x00\x00\x02{}") {
		t.Errorf("%d %q", status, body)
	}
}

func TestCertificateCoversItsHosts(t *testing.T) {
	s := start(t, Options{Hosts: []string{"api.example.com", "192.0.2.7"}})
	roots := httpClient(t, s, true).Transport.(*http.Transport).TLSClientConfig.RootCAs
	for host, ok := range map[string]bool{
		"localhost": true, "127.0.0.1": true, "::1": true, "api.example.com": true, "192.0.2.7": true, "example.com": false,
	} {
		conn, err := tls.Dial("tcp", strings.TrimPrefix(s.URL(), "https://"), &tls.Config{RootCAs: roots, ServerName: host, NextProtos: []string{"h2", "http/1.1"}})
		if (err == nil) != ok {
			t.Errorf("%s: %v", host, err)
		}
		if err == nil {
			if p := conn.ConnectionState().NegotiatedProtocol; p != "h2" {
				t.Errorf("%s: negotiated %q", host, p)
			}
			conn.Close()
		}
	}
}

func TestShutdownRemovesOnlyItsOwnFile(t *testing.T) {
	kept := t.TempDir() + "/ca.pem"
	for _, file := range []string{"", kept} {
		s, err := New(Options{CAFile: file})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if exists(s.CAFile) != (file == kept) {
			t.Errorf("CAFile %q: exists %v", file, exists(s.CAFile))
		}
	}
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
