// Package samples makes messages and tokens for tests of replays.
package samples

import (
	"encoding/base64"
	"encoding/json"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"
)

// Message generates a random protobuf message for property tests, with messages nested at most depth
// levels deep.
func Message(t *rapid.T, depth int) []byte {
	var out []byte
	for range rapid.IntRange(0, 5).Draw(t, "fields") {
		number := protowire.Number(rapid.Uint64Range(1, 40).Draw(t, "number"))
		switch kind := rapid.IntRange(0, 4).Draw(t, "kind"); {
		case kind == 0:
			out = protowire.AppendTag(out, number, protowire.VarintType)
			out = protowire.AppendVarint(out, rapid.Uint64().Draw(t, "varint"))
		case kind == 1:
			out = protowire.AppendTag(out, number, protowire.Fixed32Type)
			out = append(out, rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "i32")...)
		case kind == 2:
			out = protowire.AppendTag(out, number, protowire.Fixed64Type)
			out = append(out, rapid.SliceOfN(rapid.Byte(), 8, 8).Draw(t, "i64")...)
		case kind == 3 || depth == 0:
			out = protowire.AppendTag(out, number, protowire.BytesType)
			out = protowire.AppendBytes(out, rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "bytes"))
		default:
			out = protowire.AppendTag(out, number, protowire.BytesType)
			out = protowire.AppendBytes(out, Message(t, depth-1))
		}
	}
	return out
}

// Token returns a JSON Web Token that expires at a time. It has no valid signature.
func Token(t testing.TB, expires time.Time) string {
	t.Helper()
	claims, err := json.Marshal(map[string]any{"exp": expires.Unix(), "aud": []string{"api"}, "iss": "someone"})
	if err != nil {
		t.Fatal(err)
	}
	return encode(`{"alg":"none"}`) + "." + encode(string(claims)) + ".c2ln"
}

// encode returns a part of a token in base64url.
func encode(part string) string { return base64.RawURLEncoding.EncodeToString([]byte(part)) }
