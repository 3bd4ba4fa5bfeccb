package responses

import (
	"container/list"
	"sync"
	"time"

	"unwire/replay/agent/turn"
)

// maxKeptBytes limits the memory of all stored transcripts, in bytes.
const maxKeptBytes = 128 << 20

// A transcripts stores the transcripts of recent responses, so that clients can continue them by the
// response's id.
type transcripts struct {
	// idle is how long a transcript is stored.
	idle time.Duration

	// maxKept is the number of transcripts that are stored.
	maxKept int

	// mu guards the fields below.
	mu sync.Mutex
	// byID maps response ids to elements of queue.
	byID map[string]*list.Element

	// queue has *kept values, oldest first.
	queue *list.List

	// bytes is the approximate size of all stored transcripts.
	bytes int
}

// A kept is a stored transcript.
type kept struct {
	// id is the id of the response.
	id string

	// client is the client that may continue the response.
	client client

	// messages is the transcript including the response.
	messages []turn.Message

	// bytes is the approximate size of the messages.
	bytes int

	// until is the time at which the transcript expires.
	until time.Time
}

// newTranscripts returns an empty store with the limits in o.
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

// keep stores the transcript of the response with this id, and deletes those that are too old or exceed
// the limits.
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

// find returns the transcript of a response, if it belongs to the client c.
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

// drop deletes the transcript of a response, if it belongs to the client c. It reports whether there
// was one.
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

// expire deletes the transcripts that are too old. The caller must hold the lock.
func (t *transcripts) expire() {
	now := time.Now()
	for first := t.queue.Front(); first != nil && now.After(first.Value.(*kept).until); first = t.queue.Front() {
		t.remove(first)
	}
}

// remove deletes one element of the queue. The caller must hold the lock.
func (t *transcripts) remove(element *list.Element) {
	k := t.queue.Remove(element).(*kept)
	delete(t.byID, k.id)
	t.bytes -= k.bytes
}

// size estimates the memory of messages in bytes. Messages that several transcripts share are counted
// for each.
func size(messages []turn.Message) (n int) {
	const overhead = 100
	for _, m := range messages {
		n += overhead + partsSize(m.Parts)
	}
	return n
}

// partsSize estimates the memory of a message's parts in bytes.
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
