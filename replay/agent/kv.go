package agent

import "unwire/replay/agent/internal/message"

// kv processes a request from the server to store a blob with the client, or to return one, and sends
// the response.
func (s *Stream) kv(m message.Message) error {
	root := s.client.definitions.Client()
	answer := root.At("kv_client_message")
	// protobuf omits zero
	if id := m.Uint32("id"); id != 0 {
		answer.Set("id", id)
	}
	switch kind, args := m.Case("message"); kind {
	case "get_blob_args":
		result := answer.At("get_blob_result")
		if data, ok := s.blobs.Get(args.Value("blob_id").Bytes()); ok {
			result.Set("blob_data", data)
		}
	case "set_blob_args":
		result := answer.At("set_blob_result")
		if !s.blobs.Set(args.Value("blob_id").Bytes(), args.Value("blob_data").Bytes()) {
			result.At("error").Set("message", "the client's store is full")
		}
	default:
		// an unknown request of a newer server
		return nil
	}
	return s.answered(s.send(root))
}
