package jsonl

import (
	"bytes"
	"context"
	"os"
	"testing"
	"time"

	"unwire/captures"
)

// A counter is a recording that looks at what it is given.
type counter struct {
	t     *testing.T
	ended *int
}

func (c counter) ChunkAt(_ captures.Direction, at time.Duration, _ []byte) {
	if at < 0 {
		c.t.Errorf("a chunk at %s", at)
	}
}

func (c counter) EndAt(d time.Duration, _ captures.Outcome, _ string) {
	*c.ended++
	if d < 0 {
		c.t.Errorf("a duration of %s", d)
	}
}

// FuzzRead: any input gives exchanges that end, or an error.
func FuzzRead(f *testing.F) {
	data, err := os.ReadFile("testdata/shape.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"chunks":[{"dir":"up","t_ns":5,"data":"aGk="}],"v":1,"url":"https://h/"}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		begun, ended := 0, 0
		rep, err := read(context.Background(), bytes.NewReader(in), func(ex captures.Exchange) (recording, error) {
			begun++
			if ex.URL == "" || ex.Status < 0 {
				t.Errorf("%+v", ex)
			}
			return counter{t, &ended}, nil
		})
		if begun != ended || rep.Exchanges != ended || err == nil && begun == 0 && len(bytes.TrimSpace(in)) > 0 {
			t.Errorf("%q: %d begun, %d ended, %+v, %v", in, begun, ended, rep, err)
		}
	})
}
