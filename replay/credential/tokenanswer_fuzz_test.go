package credential

import (
	"bytes"
	"encoding/json"
	"testing"
)

// FuzzTokenAnswer: a token is a string that a member of the answer has, or there is none.
func FuzzTokenAnswer(f *testing.F) {
	f.Add([]byte(`{"accessToken":"made-up"}`), "accessToken")
	f.Add([]byte(`{"accessToken":{"a":"b"}}`), "accessToken")
	f.Add([]byte(`["accessToken"]`), "")
	f.Fuzz(func(t *testing.T, data []byte, member string) {
		token := tokenIn(data, member)
		if token == "" {
			return
		}
		quoted, err := json.Marshal(token)
		if err != nil || !json.Valid(data) || len(token) > len(data)*3 || !bytes.Contains(data, []byte(`"`)) {
			t.Errorf("the token %s is not in %q: %v", quoted, data, err)
		}
	})
}
