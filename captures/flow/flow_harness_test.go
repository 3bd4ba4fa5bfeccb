package flow_test

import (
	"fmt"
	"sort"
	"strconv"
	"testing"
)

// A str is text; a []byte is bytes: tnetstrings tell them apart.
type str string

// dump appends a tnetstring, as the format's description has it; floats as
// Python prints them.
func dump(dst []byte, v any) []byte {
	var payload []byte
	var typ byte
	switch v := v.(type) {
	case nil:
		typ = '~'
	case bool:
		payload, typ = strconv.AppendBool(nil, v), '!'
	case int:
		payload, typ = strconv.AppendInt(nil, int64(v), 10), '#'
	case float64:
		payload, typ = strconv.AppendFloat(nil, v, 'f', -1, 64), '^'
	case str:
		payload, typ = []byte(v), ';'
	case string:
		payload, typ = []byte(v), ','
	case []byte:
		payload, typ = v, ','
	case []any:
		typ = ']'
		for _, e := range v {
			payload = dump(payload, e)
		}
	case dict:
		typ = '}'
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		for _, k := range keys {
			payload = dump(dump(payload, str(k)), v[k])
		}
	default:
		panic(fmt.Sprintf("%T has no tnetstring", v))
	}
	dst = fmt.Appendf(dst, "%d:", len(payload))
	return append(append(dst, payload...), typ)
}

type dict map[string]any

func (d dict) with(k string, v any) dict {
	out := dict{k: v}
	for name, value := range d {
		if name != k {
			out[name] = value
		}
	}
	return out
}

const started = 1700000000.25

// sample is a flow as version 21 of the format has it.
func sample() dict {
	return dict{
		"version": 21, "type": str("http"), "id": str("0c4c"), "error": nil, "intercepted": false, "is_replay": nil,
		"marked": str(""), "metadata": dict{}, "comment": str(""), "timestamp_created": started, "websocket": nil, "backup": nil,
		"client_conn": dict{"peername": []any{str("127.0.0.1"), 50000}, "sockname": []any{str("127.0.0.1"), 8080}, "tls_version": str("TLSv1.3")},
		"server_conn": dict{
			"address": []any{str("api.example"), 443}, "peername": []any{str("10.0.0.1"), 443}, "sni": str("api.example"),
			"tls_version": str("TLSv1.3"), "cipher": str("TLS_AES_128_GCM_SHA256"), "alpn": "h2", "certificate_list": []any{"-----BEGIN"},
		},
		"request": dict{
			"timestamp_start": started, "timestamp_end": started + 0.001, "http_version": "HTTP/2.0", "method": "POST", "scheme": "https",
			"authority": "api.example", "host": str("10.0.0.1"), "port": 443, "path": "/agent.v1.AgentService/Run?a=1",
			"headers": []any{[]any{"content-type", "application/connect+proto"}, []any{"x-odd", []byte("\xff")}, []any{"x-odd", "2"}},
			"content": []byte("\x00\x00\x00\x00\x02\x08\x01"), "trailers": nil,
		},
		"response": dict{
			"timestamp_start": started + 0.1, "timestamp_end": started + 0.5, "http_version": "HTTP/2.0", "status_code": 200, "reason": "",
			"headers": []any{[]any{"content-type", "application/connect+proto"}}, "content": []byte("\x02\x00\x00\x00\x02{}"),
			"trailers": []any{[]any{"x-t", "v"}},
		},
	}
}

// edit changes a member of a flow's part.
func edit(part, member string, v any) dict {
	f := sample()
	f[part] = f[part].(dict).with(member, v)
	return f
}

func TestDump(t *testing.T) {
	got := string(dump(nil, dict{"a": []any{1, -2.5, true, nil, str("é"), "b"}}))
	if want := "38:1:a;30:1:1#4:-2.5^4:true!0:~2:é;1:b,]}"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
