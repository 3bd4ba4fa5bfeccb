package agent_test

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"

	"unwire/replay/agent"
	"unwire/replay/agent/turn"
	"unwire/replay/outbound"

	"unwire/proto"
)

func TestModels(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"of the agent's service": "",
		"of the other service":   `{"v":1,"answers":{"/agent.v1.AgentService/GetUsableModels":null}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			models, err := connect(t, script, nil).Models(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(models, func(m turn.Model) bool { return m.ID == "sonnet-4.5" })
			if len(models) != 3 || i < 0 || !models[i].Thinking || models[0].Aliases[0] != "composer" || models[0].Name != "Composer 1" {
				t.Errorf("got %+v", models)
			}
		})
	}
}

func TestModelsWithoutToken(t *testing.T) {
	t.Parallel()
	c := connect(t, "", func(o *agent.Options) {
		o.Token = func(context.Context) (string, error) { return "", errors.New("$NOTHING is not set") }
	})
	_, err := c.Models(t.Context())
	if e := turn.AsError(err); e.Kind != turn.Unauthorized || !strings.Contains(e.Message, "$NOTHING") {
		t.Errorf("got %v", err)
	}
}

// TestHosts asks a stand-in for the agent's host, which it says is itself.
func TestHosts(t *testing.T) {
	t.Parallel()
	for _, privacy := range []bool{false, true} {
		c := connect(t, script(`{"text":"hello"},{"turn_ended":{}}`), func(o *agent.Options) { o.Hosts, o.Privacy = true, privacy })
		if text, _, _, err := finish(t, run(t, c, user("go")), echo); err != nil || text != "hello" {
			t.Errorf("privacy %t: got %q, %v", privacy, text, err)
		}
	}
}

// TestHostsThatAreRefused has a server that names a host which may not be sent to.
func TestHostsThatAreRefused(t *testing.T) {
	t.Parallel()
	c := connect(t, `{"v":1,"answers":{"/aiserver.v1.ServerConfigService/GetServerConfig":{"agentUrlConfig":{"agentUrl":"https://evil.example","agentnUrl":"https://evil.example"}}},
		"turns":[{"steps":[{"text":"hello"},{"turn_ended":{}}]}]}`, func(o *agent.Options) { o.Hosts = true })
	if text, _, _, err := finish(t, run(t, c, user("go")), echo); err != nil || text != "hello" {
		t.Errorf("got %q, %v", text, err)
	}
}

func TestOtherHostsNeedLive(t *testing.T) {
	t.Parallel()
	o := agent.Options{
		URL: &url.URL{Scheme: "https", Host: "api.example.com"}, Profile: proto.Profile(),
		Token: func(context.Context) (string, error) { return token, nil },
	}
	for _, allowed := range [][]string{nil, {"other.example.com"}} {
		o.Live, o.AllowHosts = allowed != nil, allowed
		if _, err := agent.New(t.Context(), o); !errors.Is(err, outbound.ErrRefused) {
			t.Errorf("allowed %v: got %v, want it refused", allowed, err)
		}
	}
}
