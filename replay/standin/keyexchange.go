package standin

import (
	"context"
	"encoding/json"
	"io"
	"net/http"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/dynamicpb"

	"unwire/replay/standin/ids"
)

// exchangeKey handles the HTTP request that exchanges an API key for tokens. It is plain JSON and no
// RPC; any key yields the token that this server accepts.
func (s *Server) exchangeKey(w http.ResponseWriter, r *http.Request) {
	token := s.o.Token
	d := ids.New(s.o.Seed, r.URL.Path, "", nil)
	if token == "" {
		token = "standin-" + d.UUID()
	}
	if _, err := io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, maxMessageBytes)); err != nil {
		http.Error(w, `{"error":"the body is too large"}`, http.StatusRequestEntityTooLarge)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if r.Header.Get("authorization") == "" {
		w.WriteHeader(http.StatusUnauthorized)
		io.WriteString(w, `{"error":"there is no key"}`)
		return
	}
	// A failed write is the client's going away; there is nobody left to tell.
	_ = json.NewEncoder(w).Encode(map[string]string{
		"accessToken": token, "refreshToken": "standin-refresh-" + d.UUID(), "authId": "standin|" + d.UUID(),
	})
}

// healthChunks is how often StreamSSE repeats its payload, and healthPauseMS the pause in
// milliseconds. Clients use it to detect proxies that buffer.
const (
	// healthChunks is how often StreamSSE repeats its payload, and healthPauseMS the pause between two
	// in milliseconds. Clients call it to detect proxies that buffer.
	healthChunks  = 5
	healthPauseMS = 20
)

// streamSSE implements StreamSSE, with which clients detect proxies that buffer: it returns the
// request's payload in five chunks.
func (s *Server) streamSSE(ctx context.Context, req *connect.Request[message], stream *serverStream) error {
	for i := range healthChunks {
		if i > 0 {
			if err := sleep(ctx, healthPauseMS); err != nil {
				return err
			}
		}
		out := dynamicpb.NewMessage(s.api.Method("aiserver.v1.HealthService", "StreamSSE").Output())
		copyCommon(out, req.Msg)
		if err := stream.Send(out); err != nil {
			return err
		}
	}
	return nil
}
