package standin

import (
	"encoding/json"
	"net/http"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"unwire/replay/standin/ledger"
)

// Stats are the numbers of streams, tool calls and other events since the server started.
type Stats = ledger.Stats

// Stats returns the statistics of the server so far.
func (s *Server) Stats() Stats { return s.ledger.Stats() }

// serveStats handles GET /standin/stats: it returns the statistics as JSON. It requires no token,
// because conversation ids are the only client data in them.
func (s *Server) serveStats(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	// A failed write means that the client has gone.
	_ = json.NewEncoder(w).Encode(s.Stats())
}

// countReceived counts a client's message, and reports whether it cancels the turn.
func (s *Server) countReceived(m *dynamicpb.Message) (cancels bool) {
	kind, inner := member(m)
	s.ledger.Count(func(n *Stats) {
		// Each kind of message has its own counter.
		switch kind {
		case "client_heartbeat":
			n.Heartbeats++
		case "kv_client_message":
			n.KV.Answered++
		case "interaction_response":
			n.Queries.Answered++
		case "conversation_action":
			if cancels = has(inner, "cancel_action"); cancels {
				n.Cancelled++
			}
		case "exec_client_message":
			// Events of a shell that is still running are not an answer.
			field, result := member(inner)
			var outcome protoreflect.Name
			if result != nil {
				outcome, _ = member(result)
			}
			if field != "shell_stream" || outcome != "stdout" && outcome != "stderr" && outcome != "start" {
				n.Execs.Answered++
				switch outcome {
				case "rejected":
					n.Execs.Rejected++
				case "tool_not_found":
					n.Execs.NotFound++
				}
			}
		case "exec_client_control_message":
			switch what, _ := member(inner); what {
			case "throw":
				n.Execs.Thrown++
			case "heartbeat":
				n.Execs.Heartbeats++
			case "stream_close":
				n.Execs.Closed++
			}
		}
	})
	return cancels
}

// countSent counts a message that the server sends.
func (s *Server) countSent(m *dynamicpb.Message) {
	kind, inner := member(m)
	s.ledger.Count(func(n *Stats) {
		switch kind {
		case "exec_server_message":
			n.Execs.Asked++
		case "exec_server_control_message":
			n.Execs.Aborted++
		case "kv_server_message":
			n.KV.Asked++
		case "interaction_query":
			n.Queries.Asked++
		case "interaction_update":
			if has(inner, "turn_ended") {
				n.TurnsEnded++
			}
		}
	})
}
