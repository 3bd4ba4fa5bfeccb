package known

import "testing"

func TestMessage(t *testing.T) {
	for _, name := range []string{"google.protobuf.Timestamp", "google.protobuf.StringValue", "google.rpc.Status", "google.rpc.RetryInfo"} {
		if md := Message(name); md == nil || string(md.FullName()) != name {
			t.Errorf("%s: %v", name, md)
		}
	}
	for _, name := range []string{"", "google.rpc", "google.rpc.Status.code", "google.rpc.Nothing", "agent.v1.AgentService", "google.protobuf.NullValue"} {
		if md := Message(name); md != nil {
			t.Errorf("%q: %v", name, md.FullName())
		}
	}
}
