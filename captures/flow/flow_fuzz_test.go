package flow

import (
	"bytes"
	"context"
	"testing"
)

// FuzzRead: any input gives exchanges, skipped flows or an error.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`264:7:version;2:21#4:type;4:http;7:request;134:6:method;3:GET,6:scheme;5:https,4:host;1:h;4:port;3:443#4:path;2:/x,7:headers;11:8:1:a,` +
		`1:b,]]7:content;2:hi,15:timestamp_start;4:12.5^}8:response;71:11:status_code;3:200#7:headers;0:]7:content;0:,13:timestamp_end;4:13.5^}}`))
	f.Add([]byte("38:1:a;30:1:1#4:-2.5^4:true!0:~2:é;1:b,]}\n4:true!"))
	f.Add([]byte(`393:7:version;2:21#4:type;4:http;7:request;81:6:method;3:GET;6:scheme;5:https;4:host;1:h;4:path;2:/x;15:timestamp_start;4:12.5^}8:response;45:11:status_code;3:101#13:timestamp_end;4:13.5^}9:websocket;192:8:messages;85:39:1:1#4:true!2:hi;4:14.5^5:false!5:false!]38:1:2#5:false!2:hi;4:15.5^4:true!4:true!]]16:closed_by_client;4:true!10:close_code;4:1000#12:close_reason;1:x;13:timestamp_end;4:16.5^}}`))
	f.Add([]byte(`135:7:version;2:21#4:type;3:tcp;8:messages;23:19:4:true!2:hi;4:12.5^]]11:server_conn;50:7:address;11:1:h;4:8443#]11:tls_version;7:TLSv1.3;}}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		recorded := 0
		rep, err := read(context.Background(), bytes.NewReader(in), func(c *conversion) error {
			recorded++
			if s := c.webSocket; s != nil {
				recorded++
				if s.duration < 0 || s.ex.URL == "" || s.outcome == "" {
					t.Errorf("%+v", s.ex)
				}
			}
			if c.duration < 0 || c.ex.URL == "" || c.ex.Status < 0 || c.outcome == "" {
				t.Errorf("%+v", c.ex)
			}
			return nil
		})
		if rep.Exchanges != recorded || err == nil && rep.Exchanges+rep.Skipped == 0 && len(bytes.Trim(in, "\r\n")) > 0 {
			t.Errorf("%q: %d recorded, %+v, %v", in, recorded, rep, err)
		}
	})
}
