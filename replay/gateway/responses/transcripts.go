package responses

import (
	"container/list"
	"sync"
	"time"

	"unwire/replay/agent/turn"
)

// maxKeptBytes is the limit for the memory of all stored transcripts, in bytes: 128 MiB.
const maxKeptBytes = 128 << 20

// transcripts stores the transcripts of recent responses, so that clients can continue them.
type transcripts struct {
	idle    time.Duration
	maxKept int

	mu sync.Mutex
	// byID maps response ids to elements of queue, which has *kept values, oldest first.
	byID  map[string]*list.Element
	queue *list.List
	bytes int
}

type kept struct {
	id       string
	client   client
	messages []turn.Message
	bytes    int
	until    time.Time
}

func newTranscripts(o Options) *transcripts {
	t := &transcripts{idle: o.Idle, maxKept: o.MaxKept, byID: make(map[string]*list.Element), queue: list.New()}
	if t.idle == 0 {
		t.idle = 15 * time.Minute
	}
	if t.maxKept == 0 {
		t.maxKept = 256
	}
	return t
}

// keep keeps the transcript of a response. It drops what is too old or too much.
func (t *transcripts) keep(c client, id string, messages []turn.Message) {
	k := &kept{id: id, client: c, messages: messages, bytes: size(messages), until: time.Now().Add(t.idle)}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.byID[id] = t.queue.PushBack(k)
	t.bytes += k.bytes
	t.expire()
	for t.queue.Len() > t.maxKept || t.bytes > maxKeptBytes {
		t.remove(t.queue.Front())
	}
}

// find returns the transcript of a response of this client.
func (t *transcripts) find(c client, id string) ([]turn.Message, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expire()
	element, ok := t.byID[id]
	if !ok || element.Value.(*kept).client != c {
		return nil, false
	}
	return element.Value.(*kept).messages, true
}

// drop forgets the transcript of a response. It reports whether there was one.
func (t *transcripts) drop(c client, id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expire()
	element, ok := t.byID[id]
	if !ok || element.Value.(*kept).client != c {
		return false
	}
	t.remove(element)
	return true
}

// expire deletes the transcripts that are too old. The queue is ordered by expiry.
func (t *transcripts) expire() {
	now := time.Now()
	for first := t.queue.Front(); first != nil && now.After(first.Value.(*kept).until); first = t.queue.Front() {
		t.remove(first)
	}
}

func (t *transcripts) remove(element *list.Element) {
	k := t.queue.Remove(element).(*kept)
	delete(t.byID, k.id)
	t.bytes -= k.bytes
}

// size returns about how many bytes messages take. Transcripts that continue each other
// share their messages, which are counted for each.
func size(messages []turn.Message) (n int) {
	const overhead = 100
	for _, m := range messages {
		n += overhead + partsSize(m.Parts)
	}
	return n
}

func partsSize(parts []turn.Part) (n int) {
	const overhead = 100
	for _, p := range parts {
		n += overhead + len(p.Text) + len(p.Thinking)
		if p.Image != nil {
			n += len(p.Image.Data)
		}
		if p.Call != nil {
			n += len(p.Call.Arguments)
		}
		if p.Result != nil {
			n += partsSize(p.Result.Parts)
		}
	}
	return n
}
