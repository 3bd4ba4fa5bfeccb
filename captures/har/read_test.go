package har

import (
	"bytes"
	"context"
	"os"
	"testing"

	"unwire/captures"
)

// FuzzRead: any input gives exchanges that fit together, or an error.
func FuzzRead(f *testing.F) {
	data, err := os.ReadFile("testdata/browser.har")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"log":{"entries":[{"startedDateTime":"2026-01-02T03:04:05Z","request":{"method":"GET","url":"https://h/"},` +
		`"response":{"content":{"text":"hello"}},"_unwire":{"v":1,"outcome":"complete","up":"aGk=","chunks":[{"dir":"down","len":5},{"dir":"up","len":2}]}}]}}`))
	f.Add([]byte(`{"log":{"entries":[{"startedDateTime":"2026-01-02T03:04:05Z","request":{"method":"GET","url":"wss://h/"},"response":{"status":101},` +
		`"_webSocketMessages":[{"type":"send","time":1767323045.5,"opcode":1,"data":"hi"},{"type":"receive","time":1767323045.6,"opcode":2,"data":"AAE="},` +
		`{"type":"error","time":1,"opcode":-1,"data":"lost"}]},{"request":{"method":"GET","url":"wss://h/"},"_webSocketMessages":[{"type":"send","opcode":9,"data":"aGk=","_encoding":"base64"}],` +
		`"_unwire":{"v":1,"transport":"websocket","outcome":"complete","relations":[{"kind":"handshake","exchange":1}],"chunks":[{"dir":"up","len":2,"opcode":9,"final":true}]}}]}}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		recorded := 0
		rep, err := read(context.Background(), bytes.NewReader(in), func(c *conversion) error {
			var bodies [2][]byte
			for _, chunk := range c.chunks {
				bodies[chunk.Dir] = append(bodies[chunk.Dir], chunk.Data...)
				if chunk.T < 0 {
					t.Errorf("a chunk at %s", chunk.T)
				}
			}
			if c.webSocket != nil {
				recorded++
				for _, chunk := range c.webSocket.chunks {
					if chunk.T < 0 || !chunk.Opcode.Kind().Known() {
						t.Errorf("%+v", chunk)
					}
				}
				if c.webSocket.duration < 0 || c.webSocket.ex.URL == "" || c.webSocket.ex.Transport != captures.WebSocket {
					t.Errorf("%+v", c.webSocket.ex)
				}
			}
			if !c.onlyWebSocket {
				recorded++
			}
			c.rep.Exchanges = recorded
			if c.onlyWebSocket {
				return nil
			}
			if len(c.chunks) > 0 && (!bytes.Equal(bodies[captures.Up], c.bodies[captures.Up]) || !bytes.Equal(bodies[captures.Down], c.bodies[captures.Down])) {
				t.Error("the chunks are not the bodies")
			}
			if c.duration < 0 || c.ex.URL == "" || c.ex.Status < 0 {
				t.Errorf("%+v", c.ex)
			}
			return nil
		})
		if rep.Exchanges != recorded || rep.Skipped > 0 && len(rep.Problems) == 0 {
			t.Errorf("%d recorded, %+v, %v", recorded, rep, err)
		}
	})
}
