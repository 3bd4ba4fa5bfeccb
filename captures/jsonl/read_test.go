package jsonl

import (
	"bytes"
	"context"
	"os"
	"testing"
	"time"

	"unwire/captures"
	"unwire/captures/transfer"
)

// A counter is a recording that looks at what it is given.
type counter struct {
	t     *testing.T
	ended *int
}

func (c counter) ID() int64 { return int64(*c.ended) + 1 }

func (c counter) MessageAt(dir captures.Direction, at time.Duration, op captures.Opcode, p []byte) {
	if !op.Known() && !op.Kind().Known() {
		c.t.Errorf("opcode %d", op)
	}
	c.ChunkAt(dir, at, p)
}

// A relations is a capture to which nothing is imported but relations.
type relations struct {
	captures.Target
	t *testing.T
}

func (r relations) Relate(rel captures.Relation) {
	if rel.Exchange <= 0 || rel.Target <= 0 || rel.Kind == "" {
		r.t.Errorf("%+v", rel)
	}
}

func (r relations) PutNote(_ context.Context, n captures.Note) error {
	if n.Exchange <= 0 || n.Frame < captures.NoFrame || n.Value == "" {
		r.t.Errorf("%+v", n)
	}
	return nil
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
	f.Add([]byte(`{"v":1,"id":3,"transport":"websocket","url":"wss://h/","process":{"pid":5,"name":"curl"},"relations":[{"kind":"handshake","exchange":4}],"notes":[{"kind":"note","value":"a"},{"kind":"mark","dir":"up","frame":0,"path":"1","value":"b"}],` +
		`"chunks":[{"dir":"up","t_ns":5,"opcode":1,"compressed":true,"data":"aGk="},{"dir":"up","opcode":0,"final":true,"data":""},{"dir":"down","opcode":9,"final":true}]}` +
		"\n" + `{"v":1,"id":4,"transport":"tls","url":"tls://h:1","chunks":[{"dir":"down","data":"aGk="}]}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		begun, ended := 0, 0
		to := relations{t: t}
		relater := transfer.NewRelater(to)
		rep, err := readLines(context.Background(), bytes.NewReader(in), to, relater, func(ex captures.Exchange) (exchangeRecorder, error) {
			begun++
			if ex.URL == "" || ex.Status < 0 {
				t.Errorf("%+v", ex)
			}
			return counter{t, &ended}, nil
		})
		relater.Finish(&rep)
		if begun != ended || rep.Exchanges != ended || err == nil && begun == 0 && len(bytes.TrimSpace(in)) > 0 {
			t.Errorf("%q: %d begun, %d ended, %+v, %v", in, begun, ended, rep, err)
		}
	})
}
