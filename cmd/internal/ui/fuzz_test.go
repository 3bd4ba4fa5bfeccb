package ui

import (
	"net/url"
	"testing"

	"unwire/captures"
)

// FuzzRequest: the parameters and the body of a request that has the token are within their bounds, or refused.
func FuzzRequest(f *testing.F) {
	f.Add("from=1&to=200", []byte(`{"place":"7/up/0/1.2","kind":"mark","value":"a"}`))
	f.Add("from=9223372036854775807", []byte(`{"place":1}`))
	f.Add("from=-1&to=;", []byte(`{"other":1}{`))
	f.Fuzz(func(t *testing.T, query string, body []byte) {
		values, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		q := &request{query: values, body: body}
		const most = 100
		if from, to, err := q.window(most); err == nil && (from < 0 || to < from || to-from > most) {
			t.Errorf("%s: rows %d to %d", query, from, to)
		}
		var asked struct {
			Place string            `json:"place"`
			Kind  captures.NoteKind `json:"kind"`
		}
		if err := q.parse(&asked); err == nil && len(asked.Place) > 3*len(body) {
			t.Errorf("%q became %q", body, asked.Place)
		}
	})
}
