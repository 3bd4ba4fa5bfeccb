package redact

import (
	"strings"
	"testing"

	"unwire/captures"
)

// TestFindByContext tests that redaction masks values by the text around them, however the body is split into chunks, and
// keeps values that only resemble them.
func TestFindByContext(t *testing.T) {
	const yaml = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: web\n"
	for _, c := range []struct {
		name, body, value string
		kept              bool
	}{
		{"SQL", `{"query":"CREATE USER mary WITH PASSWORD 'plum-orchid'"}`, "plum-orchid", false},
		{"SQL, method", "ALTER USER u IDENTIFIED WITH sha256_password BY 'plum-orchid' ACCOUNT UNLOCK;", "plum-orchid", false},
		{"SQL, double quotes in JSON", `{"sql":"alter user u identified by \"plum-orchid\" replace"}`, "plum-orchid", false},
		{"SQL, function", "SET PASSWORD FOR 'jack' = PASSWORD('plum-orchid')", "plum-orchid", false},
		{"SQL, no quotes", "CREATE USER u IDENTIFIED BY plum_orchid DEFAULT TABLESPACE a", "plum_orchid", false},
		{"SQL, at the end", "CREATE USER u IDENTIFIED BY plum_orchid", "plum_orchid", false},
		{"SQL, form", "sql=ALTER+ROLE+app+PASSWORD+%27plum-orchid%27&x=1", "plum-orchid", false},
		{"SQL, select", "SELECT 1 FROM users WHERE password = x AND name IN ('plum-orchid')", "plum-orchid", true},
		{"SQL, prose", "rows are identified by 'plum-orchid' here", "plum-orchid", true},

		{"YAML, data", yaml + "data:\n  user: bWFyeQ==\n  conn: cGx1bS1vcmNoaWQ=\n", "cGx1bS1vcmNoaWQ=", false},
		{"YAML, kind after", "apiVersion: v1\ndata:\n  conn: cGx1bS1vcmNoaWQ=\nkind: Secret\n", "cGx1bS1vcmNoaWQ=", false},
		{"YAML, item of a list", "items:\n- apiVersion: v1\n  kind: Secret\n  stringData:\n    conn: plum-orchid\n", "plum-orchid", false},
		{"YAML, item that begins with data", "items:\n- data:\n    conn: plum-orchid\n  kind: Secret\n", "plum-orchid", false},
		{"YAML, other kind", "kind: ConfigMap\ndata:\n  conn: plum-orchid\n---\n" + yaml, "plum-orchid", true},
		{"YAML, other item", "items:\n- data:\n    conn: plum-orchid\n  kind: ConfigMap\n- kind: Secret\n", "plum-orchid", true},
		{"YAML, metadata", yaml + "  namespace: plum-orchid\n", "plum-orchid", true},

		{"form, XML", "xml=%3Cquery%3E%3Cuserid%3E12%3C%2Fuserid%3E%3Cpassword%3Eplum-orchid%3C%2Fpassword%3E%3C%2Fquery%3E", "plum-orchid", false},
		{"form, JSON", "a=1&json=%7B%22id%22%3A1%2C%22password%22%3A%22plum-orchid%22%7D", "plum-orchid", false},
		{"form, connection string", "cs=Server%3Dh%3BUser+Id%3Dsa%3BPassword%3Dplum-orchid7%3B", "plum-orchid7", false},
		{"form, parameter of a URL", "next=https%3A%2F%2Fa.example.com%2F%3Fa%3D1%26password%3Dplum-orchid&b=2", "plum-orchid", false},
		{"form, password of a URL", "next=postgres%3A%2F%2Fmary%3Aplum-orchid%40db%2Fapp", "plum-orchid", false},
		{"form, other member", "json=%7B%22title%22%3A%22plum-orchid%22%7D", "plum-orchid", true},

		{"address of Go", `{"dsn":"mary:plum-orchid@tcp(db:3306)/app"}`, "plum-orchid", false},
		{"address of Oracle", `{"url":"jdbc:oracle:thin:mary/plum-orchid@//db:1521/x"}`, "plum-orchid", false},
		{"address of mail", `{"to":"mailto:plum-orchid@example.com"}`, "plum-orchid", true},

		{"arrow", `jdbc_user => 'u' jdbc_password => 'plum-orchid'`, "plum-orchid", false},
		{"attribute in capitals", `<FIELD KEY="password">plum-orchid</FIELD>`, "plum-orchid", false},
		{"card", `<pan>4242424242424242</pan>`, "4242424242424242", false},
		{"number that is no card", `<pan>4242424242424241</pan>`, "4242424242424241", true},
		{"pass of a renderer", `{"renderPass":"plum-orchid"}`, "plum-orchid", true},
	} {
		var headers captures.Headers
		if strings.Contains(c.body, "=") && strings.Contains(c.body, "%") && !strings.Contains(c.body, " ") {
			headers = captures.Headers{{Name: "content-type", Value: "application/x-www-form-urlencoded"}}
		}
		for _, size := range []int{len(c.body), 64, 7, 1} {
			got := redactPieces(headers, c.body, size)
			if kept := strings.Contains(got, c.value); kept != c.kept || len(got) != len(c.body) {
				t.Errorf("%s, in pieces of %d bytes: %s\nbecame %s", c.name, size, c.body, got)
			}
		}
	}
}

// TestURLByContext tests that redaction masks a segment of a path, or a parameter, by the words before it, and keeps the
// identifiers of resources.
func TestURLByContext(t *testing.T) {
	const key, short, hex = "Ql2oa8v4sit1UKK9uqQ0a5TF", "G40dWEnZmQ", "e6bcfb7da67ad865773aa1fa67f290f8"
	for u, secret := range map[string]string{
		"https://a.example.com/build_hooks/" + hex:                  hex,
		"https://a.example.com/webhook/" + short:                    short,
		"https://a.example.com/api/push/" + short + "?status=up":    short,
		"https://a.example.com/api/" + key + "/lights":              key,
		"https://a.example.com/api/v1/" + key + "/telemetry":        key,
		"https://a.example.com/x/" + key + key + key:                key,
		"https://a.example.com/update.php?" + key:                   key,
		"https://a.example.com/read?u=mary&p=plum-orchid":           "plum-orchid",
		"https://a.example.com/api/v1/items/" + hex:                 "",
		"https://a.example.com/documents/" + key:                    "",
		"https://a.example.com/main.css?" + hex:                     "",
		"https://a.example.com/list?p=12&u=mary":                    "",
		"https://a.example.com/docs/webhooks/events-and-payloads-2": "",
	} {
		got := New(Options{}).redactURL(u)
		if secret == "" && got != u || secret != "" && strings.Contains(got, secret) {
			t.Errorf("%s became %s", u, got)
		}
	}
}
