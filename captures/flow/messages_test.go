package flow_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"unwire/captures"
	"unwire/captures/internal/samples"
	"unwire/captures/transfer"
)

// handshake is a flow with a WebSocket, which ends a second after it began.
func handshake() dict {
	f := edit("response", "status_code", 101)
	f["request"] = f["request"].(dict).with("method", "GET").with("content", "")
	f["response"] = f["response"].(dict).with("content", "").with("trailers", nil)
	return f.with("websocket", dict{
		"messages": []any{
			[]any{1, true, "hé", started + 0.6, false, false},
			[]any{2, false, []byte("\x00\xff"), started + 0.7, true, false},
			[]any{1, false, "", started + 0.65, false, true},
		},
		"closed_by_client": true, "close_code": 1000, "close_reason": str("done"), "timestamp_end": started + 1.5,
	})
}

// socket is what is read of it.
func socket() samples.Whole {
	final := captures.OpFinal
	return samples.Whole{
		Exchange: captures.Exchange{
			ID: 2, Transport: captures.WebSocket, URL: "wss://api.example/agent.v1.AgentService/Run?a=1", HTTP: "2",
			Started: time.Unix(1700000000, 750e6).UTC(), Duration: time.Second, Client: "127.0.0.1:50000", Server: "10.0.0.1:443",
			TLS:     captures.TLS{Version: "1.3", Cipher: "TLS_AES_128_GCM_SHA256", ServerName: "api.example", ALPN: "h2"},
			Outcome: captures.Complete, BytesUp: 9, BytesDown: 2, Source: "import mitmproxy",
		},
		Chunks: []captures.Chunk{
			{Exchange: 2, Dir: captures.Up, Opcode: captures.OpText | final, T: 100 * time.Millisecond, Data: []byte("hé")},
			{Exchange: 2, Dir: captures.Down, Seq: 1, Opcode: captures.OpBinary | final, T: 200 * time.Millisecond, Data: []byte("\x00\xff")},
			{Exchange: 2, Dir: captures.Down, Seq: 2, Opcode: captures.OpText | final, T: 200 * time.Millisecond, Data: []byte{}},
			{Exchange: 2, Dir: captures.Up, Seq: 3, Opcode: captures.OpClose | final, T: time.Second, Data: []byte("\x03\xe8done")},
		},
		Relations: []captures.Relation{{Exchange: 2, Kind: captures.HandshakeOf, Target: 1}},
	}
}

// TestWebSocket: a handshake and its messages are two exchanges that are related.
func TestWebSocket(t *testing.T) {
	t.Parallel()
	got, rep := load(t, dump(nil, handshake()))
	want := transfer.Report{Exchanges: 2, Problems: []string{
		"flow 0: mitmproxy did not forward 1 of websocket.messages", "flow 0: mitmproxy itself sent 1 of websocket.messages",
	}}
	if d := cmp.Diff(want, rep); d != "" || len(got) != 2 {
		t.Fatal(d)
	}
	if got[0].Status != 101 || got[0].Outcome != captures.Complete || got[0].Duration != 500*time.Millisecond {
		t.Errorf("%+v", got[0])
	}
	w := socket()
	w.BytesUp = int64(len("hé") + 2 + len("done"))
	if d := cmp.Diff(w, got[1]); d != "" {
		t.Error(d)
	}
}

// TestWebSocketEnds: a flow has how its WebSocket ended.
func TestWebSocketEnds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		edit       func(dict) dict
		outcome    captures.Outcome
		errText    string
		closeFrame string
	}{
		{name: "closed without a code", edit: func(w dict) dict { return w.with("close_code", 1005) }, outcome: captures.Complete, closeFrame: "up "},
		{name: "not closed", edit: func(w dict) dict { return w.with("close_code", 1006) }, outcome: captures.Reset, errText: "the WebSocket ended without a close frame"},
		{name: "by the server", edit: func(w dict) dict { return w.with("closed_by_client", false) }, outcome: captures.Complete, closeFrame: "down \x03\xe8done"},
		{name: "still open", edit: func(w dict) dict {
			return w.with("closed_by_client", nil).with("close_code", nil).with("timestamp_end", nil)
		}, outcome: captures.Incomplete},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := handshake()
			got, _ := load(t, dump(nil, f.with("websocket", c.edit(f["websocket"].(dict)))))
			var closeFrame string
			for _, k := range got[1].Chunks {
				if k.Opcode.Kind() == captures.OpClose {
					closeFrame = k.Dir.String() + " " + string(k.Data)
				}
			}
			if got[1].Outcome != c.outcome || got[1].Error != c.errText || closeFrame != c.closeFrame {
				t.Errorf("%s, %q, closed by %q", got[1].Outcome, got[1].Error, closeFrame)
			}
		})
	}
	failed, _ := load(t, dump(nil, handshake().with("error", dict{"msg": str("lost"), "timestamp": started + 2})))
	if failed[0].Outcome != captures.Complete || failed[1].Outcome != captures.Reset || failed[1].Error != "lost" || failed[1].Duration != 1500*time.Millisecond {
		t.Errorf("%+v\n%+v", failed[0], failed[1])
	}
}

// TestOldWebSocket: before version 12 a WebSocket is a flow of its own.
func TestOldWebSocket(t *testing.T) {
	t.Parallel()
	opened := handshake().with("version", 7).with("websocket", nil).with("id", str("one"))
	messages := sample().with("version", 7).with("type", str("websocket")).with("metadata", dict{"websocket_handshake": str("one")}).
		with("messages", []any{[]any{1, true, "hi", started + 1, false}}).with("close_sender", str("client"))
	got, rep := load(t, dump(dump(nil, opened), messages))
	if rep.Exchanges != 2 || len(rep.Problems) > 0 {
		t.Fatalf("%+v", rep)
	}
	w := got[1]
	if w.Transport != captures.WebSocket || w.URL != "wss://api.example:443" || string(w.Chunks[0].Data) != "hi" || w.Outcome != captures.Complete {
		t.Errorf("%+v", w)
	}
	if d := cmp.Diff([]captures.Relation{{Exchange: 2, Kind: captures.HandshakeOf, Target: 1}}, w.Relations); d != "" {
		t.Error(d)
	}
}

// TestConnection: a flow of TCP, in TLS and not.
func TestConnection(t *testing.T) {
	t.Parallel()
	flow := dict{
		"version": 21, "type": str("tcp"), "error": nil,
		"client_conn": dict{"peername": []any{str("127.0.0.1"), 50000}, "timestamp_start": started, "timestamp_end": started + 2},
		"server_conn": dict{"address": []any{str("mqtt.example"), 8883}, "peername": []any{str("10.0.0.1"), 8883}, "sni": str("mqtt.example"), "tls_version": str("TLSv1.3")},
		"messages":    []any{[]any{false, []byte("\x00hello"), started + 0.5}, []any{true, "\xff", started + 1.0}},
	}
	want := samples.Whole{
		Exchange: captures.Exchange{
			ID: 1, Transport: captures.RawTLS, URL: "tls://mqtt.example:8883", Started: time.Unix(1700000000, 250e6).UTC(), Duration: 2 * time.Second,
			Client: "127.0.0.1:50000", Server: "10.0.0.1:8883", TLS: captures.TLS{Version: "1.3", ServerName: "mqtt.example"},
			Outcome: captures.Complete, BytesUp: 1, BytesDown: 6, Source: "import mitmproxy",
		},
		Chunks: []captures.Chunk{
			{Exchange: 1, Dir: captures.Down, T: 500 * time.Millisecond, Data: []byte("\x00hello")},
			{Exchange: 1, Dir: captures.Up, Seq: 1, T: time.Second, Data: []byte("\xff")},
		},
	}
	got, _ := load(t, dump(nil, flow))
	if d := cmp.Diff([]samples.Whole{want}, got); d != "" {
		t.Error(d)
	}
	clear := flow.with("server_conn", flow["server_conn"].(dict).with("tls_version", nil)).with("error", dict{"msg": str("reset"), "timestamp": started})
	got, _ = load(t, dump(nil, clear))
	if w := got[0]; w.Transport != captures.RawTCP || w.URL != "tcp://mqtt.example:8883" || w.Outcome != captures.Reset || w.Error != "reset" {
		t.Errorf("%+v", w)
	}
}
