package proto

import (
	"net/url"
	"testing"
)

func TestAgent(t *testing.T) {
	p := Profile()
	for _, c := range []struct{ backend, ghost, want string }{
		{"https://api2.cursor.sh", "true", "https://agent.api5.cursor.sh"},
		{"https://api2.cursor.sh", "", "https://agent.api5.cursor.sh"}, // not said: private
		{"https://api2.cursor.sh", "false", "https://agentn.api5.cursor.sh"},
		{"https://agent.api5.cursor.sh", "implicit-false", "https://agentn.api5.cursor.sh"},
		{"https://staging.cursor.sh", "true", "https://staging.cursor.sh"},
		{"http://localhost:8080", "false", "http://localhost:8080"},
	} {
		u, err := url.Parse(c.backend)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.AgentEndpoint(u, c.ghost).String(); got != c.want {
			t.Errorf("%s with %q: %s, not %s", c.backend, c.ghost, got, c.want)
		}
	}
}

func TestFor(t *testing.T) {
	for host, want := range map[string]bool{
		"api2.cursor.sh": true, "AGENT.api5.cursor.sh.": true, "cursor.sh.example.com": false, "notcursor.sh": false, "cursor.sh": false, "": false,
	} {
		if got := Profile().CoversHost(host); got != want {
			t.Errorf("%q: %v", host, got)
		}
	}
}

func TestServes(t *testing.T) {
	p := Profile()
	for service, want := range map[string]bool{
		"agent.v1.AgentService": true, "aiserver.v1.BidiService": true, "agent.v1.internal.Other": true,
		"agent.v1": false, "agent.v10.AgentService": false, "my.agent.v1.AgentService": false, "shop.v1.Shop": false, "Echo": false, "": false,
	} {
		if got := p.Serves(service); got != want {
			t.Errorf("%q: %v", service, got)
		}
		if got := p.IsAppend(service, "BidiAppend"); got != want {
			t.Errorf("%q/BidiAppend: %v", service, got)
		}
		if got := p.Head(service, "RunSSE") != nil; got != want {
			t.Errorf("%q/RunSSE: %v", service, got)
		}
		if got := p.ForAnyPackage().Head(service, "RunSSE") != nil; got != (service != "") {
			t.Errorf("%q/RunSSE everywhere: %v", service, got)
		}
	}
}
