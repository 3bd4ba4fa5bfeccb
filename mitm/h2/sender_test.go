package h2

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A sentFrame is a frame that a sender wrote. write counts the writes.
type sentFrame struct {
	frameHeader
	payload string
	write   int
}

// A receiver reads what a sender writes.
type receiver struct {
	t    *testing.T
	send *sender
	conn net.Conn

	frames chan sentFrame
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	near, far := net.Pipe()
	r := &receiver{t: t, send: newSender(newSide(&Conn{Conn: near})), conn: far, frames: make(chan sentFrame, 10_000)}
	t.Cleanup(func() {
		r.send.close()
		near.Close()
		far.Close()
	})
	go func() {
		// A Read of a pipe returns what one Write wrote.
		buf := make([]byte, 1<<20)
		for write := 0; ; write++ {
			n, err := far.Read(buf)
			if err != nil {
				close(r.frames)
				return
			}
			for p := buf[:n]; len(p) > 0; {
				h := parseFrameHeader(p)
				r.frames <- sentFrame{h, string(p[frameHeaderSize : frameHeaderSize+h.length]), write}
				p = p[frameHeaderSize+h.length:]
			}
		}
	}()
	return r
}

// next returns the next frame.
func (r *receiver) next() sentFrame {
	r.t.Helper()
	select {
	case f := <-r.frames:
		return f
	case <-time.After(testTimeout):
		r.t.Fatal("no frame came")
		return sentFrame{}
	}
}

// nothing expects that no frame comes.
func (r *receiver) nothing() {
	r.t.Helper()
	select {
	case f := <-r.frames:
		r.t.Fatalf("unexpected: %+v", f)
	case <-time.After(20 * time.Millisecond):
	}
}

// data reads DATA of a stream until there are n bytes, and returns whether the last had END_STREAM.
func (r *receiver) data(stream uint32, n int) (end bool) {
	r.t.Helper()
	for n > 0 {
		f := r.next()
		if f.kind != frameData || f.stream != stream || f.length > n || f.length > defaultFrameSize {
			r.t.Fatalf("%d bytes of stream %d left, got a frame of type %d with %d bytes for stream %d", n, stream, f.kind, f.length, f.stream)
		}
		n -= f.length
		end = f.has(flagEndStream)
	}
	return end
}

// Data of a changed stream waits for both windows of the receiver, and what follows waits with it.
func TestSenderWaitsForWindows(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	w := r.send
	w.openQueue(1, &sendQueue{})
	w.stopPassing(1)
	var sent atomic.Int32
	w.enqueue(1, sendItem{data: make([]byte, defaultWindow+1000)})
	w.enqueue(1, sendItem{frame: encodeHeaders(1, nil, true), sent: func() { sent.Add(1) }})
	r.data(1, defaultWindow)
	r.nothing()

	// The connection's window alone is not enough. Its update pays for what was sent, so the other side gets none of it.
	if forwarded := w.windowUpdate(0, 5000); forwarded != 0 {
		t.Errorf("%d bytes of the window were forwarded", forwarded)
	}
	r.nothing()
	if forwarded := w.windowUpdate(1, 400); forwarded != 0 {
		t.Errorf("%d bytes of the stream's window were forwarded", forwarded)
	}
	r.data(1, 400)
	// A greater initial window counts for streams that exist.
	w.setInitial(defaultWindow + 599)
	r.data(1, 599)
	w.setInitial(defaultWindow + 600)
	r.data(1, 1)
	if f := r.next(); f.kind != frameHeaders || !f.has(flagEndStream) {
		t.Errorf("got %+v", f)
	}
	w.endQueue(1)
	for deadline := time.Now().Add(testTimeout); sent.Load() != 1; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("reported %d times", sent.Load())
		}
	}

	// Everything that was sent is withheld, then updates pass.
	if forwarded := w.windowUpdate(0, defaultWindow); forwarded != 5000-1000 {
		t.Errorf("%d bytes were forwarded, want what exceeds the overdraft", forwarded)
	}
	if forwarded := w.windowUpdate(0, 7); forwarded != 7 {
		t.Errorf("%d of 7 bytes were forwarded", forwarded)
	}
	if forwarded := w.windowUpdate(3, 9); forwarded != 9 {
		t.Errorf("%d of 9 bytes of an unchanged stream were forwarded", forwarded)
	}
	// The queue is removed after the callback.
	for deadline := time.Now().Add(testTimeout); w.enqueue(1, sendItem{}); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the queue still exists")
		}
	}
}

// A negative window, by a smaller initial one, is filled up first.
func TestSenderNegativeWindow(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	r.send.openQueue(1, &sendQueue{})
	r.send.stopPassing(1)
	r.send.enqueue(1, sendItem{data: make([]byte, 100)})
	r.data(1, 100)
	r.send.setInitial(50)
	r.send.enqueue(1, sendItem{data: make([]byte, 10), end: true})
	r.nothing()
	r.send.windowUpdate(1, 50)
	r.nothing()
	r.send.windowUpdate(1, 9)
	r.data(1, 9)
	r.send.windowUpdate(1, 1)
	if !r.data(1, 1) {
		t.Error("END_STREAM is missing")
	}
}

// Data of unchanged streams waits only if changed ones have used the window, in order, and with its end.
func TestSenderUnchanged(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	w := r.send
	if !w.takeWindow(3, defaultWindow+1) {
		t.Error("without changed streams, the other side keeps the window itself")
	}
	w.windowUpdate(0, defaultWindow+1)
	w.openQueue(1, &sendQueue{})
	w.stopPassing(1)
	w.enqueue(1, sendItem{data: make([]byte, defaultWindow-10)})
	r.data(1, defaultWindow-10)
	if !w.takeWindow(3, 10) || w.takeWindow(3, 1) || w.isWaiting(3) {
		t.Error("10 bytes are left for unchanged streams")
	}
	w.enqueueUnchanged(3, sendItem{data: []byte("ab")})
	w.enqueueUnchanged(3, sendItem{data: []byte("c"), end: true})
	if !w.isWaiting(3) || w.isWaiting(1) || w.takeWindow(3, 0) {
		t.Error("nothing may overtake what waits")
	}
	r.nothing()
	w.windowUpdate(0, 2)
	if f := r.next(); f.payload != "ab" || f.stream != 3 || f.has(flagEndStream) {
		t.Errorf("%+v", f)
	}
	w.windowUpdate(0, 1)
	if f := r.next(); f.payload != "c" || !f.has(flagEndStream) {
		t.Errorf("%+v", f)
	}
	for deadline := time.Now().Add(testTimeout); w.isWaiting(3); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the queue has not gone")
		}
	}
	w.enqueueUnchanged(5, sendItem{data: []byte("never")})
	w.dropQueue(5)
	w.windowUpdate(0, 100)
	r.nothing()
}

// Frames that must be alone get a write of their own; control frames and grants come first.
func TestSenderOrder(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	w := r.send
	w.mu.Lock()
	w.queues[1] = &sendQueue{changed: true, window: defaultWindow}
	w.order = append(w.order, 1)
	reset := resetFrame(1, 0)
	w.queues[1].items = []sendItem{{data: []byte("end"), end: true}, {frame: reset, alone: true}}
	w.control = appendFrame(nil, 0x06, 0, 0, []byte("pingping"))
	w.granted[0] = maxStreamID + 5
	w.start()
	w.mu.Unlock()
	ping, grants, data := r.next(), []sentFrame{r.next(), r.next()}, r.next()
	if ping.kind != 0x06 || data.payload != "end" || !data.has(flagEndStream) || data.write != ping.write {
		t.Errorf("%+v, %+v", ping, data)
	}
	granted := uint64(0)
	for _, f := range grants {
		if f.kind != frameWindowUpdate || f.stream != 0 {
			t.Errorf("%+v", f)
		}
		granted += uint64(binary.BigEndian.Uint32([]byte(f.payload)))
	}
	if granted != maxStreamID+5 {
		t.Errorf("granted %d", granted)
	}
	if f := r.next(); f.kind != frameRSTStream || f.write == data.write {
		t.Errorf("%+v in the write of %+v", f, data)
	}
}

// Whoever waits for space goes on when there is some, and gives up when the stream or the connection ends.
func TestSenderSpace(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*sender){
		"space":     func(w *sender) { w.windowUpdate(0, 1<<20); w.windowUpdate(1, 1<<20) },
		"interrupt": func(w *sender) { w.interrupt(1) },
		"drop":      func(w *sender) { w.dropQueue(1) },
		"close":     func(w *sender) { w.close() },
	} {
		r := newReceiver(t)
		go func() {
			for range r.frames {
			}
		}()
		w := r.send
		w.openQueue(1, &sendQueue{})
		w.stopPassing(1)
		w.enqueue(1, sendItem{data: make([]byte, defaultWindow+maxQueued)})
		got := make(chan bool)
		go func() { got <- w.awaitSpace(1) }()
		select {
		case <-got:
			t.Errorf("%s: a full queue has space", name)
		case <-time.After(20 * time.Millisecond):
		}
		end(w)
		select {
		case space := <-got:
			if space != (name == "space") {
				t.Errorf("%s: %v", name, space)
			}
		case <-time.After(testTimeout):
			t.Errorf("%s: still waiting", name)
		}
	}
}

// A simulation is a connection on which the sender's promises are checked: the receiver's windows are never exceeded,
// and all data arrives in order.
type simulation struct {
	t      *testing.T
	random *rand.Rand
	send   *sender

	mu sync.Mutex
	// window and streams are the receiver's windows; unread is what it has not granted again.
	window  int
	streams map[uint32]int
	unread  map[uint32]int
	got     map[uint32][]byte

	// theirWindow and theirStreams are the windows that the other side knows.
	theirWindow  int
	theirStreams map[uint32]int
}

// receive notes DATA that has reached the receiver.
func (s *simulation) receive(stream uint32, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.window -= len(data)
	s.streams[stream] -= len(data)
	s.unread[stream] += len(data)
	s.got[stream] = append(s.got[stream], data...)
	if s.window < 0 || s.streams[stream] < 0 {
		s.t.Errorf("window %d, window of stream %d: %d", s.window, stream, s.streams[stream])
	}
}

// grant has the receiver grant a part of what it has received, or all.
func (s *simulation) grant(all bool) {
	s.mu.Lock()
	amounts := make(map[uint32]int)
	for _, stream := range slices.Sorted(mapKeys(s.unread)) {
		n := s.unread[stream]
		if !all {
			n = s.random.IntN(n + 1)
		}
		if n > 0 {
			amounts[stream] = n
			s.unread[stream] -= n
			s.window += n
			s.streams[stream] += n
		}
	}
	s.mu.Unlock()
	for _, stream := range slices.Sorted(mapKeys(amounts)) {
		n := int64(amounts[stream])
		connection, forStream := s.send.windowUpdate(0, n), s.send.windowUpdate(stream, n)
		s.theirWindow += int(connection)
		s.theirStreams[stream] += int(forStream)
	}
}

// mapKeys yields the keys of a map.
func mapKeys(m map[uint32]int) func(func(uint32) bool) {
	return func(yield func(uint32) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// sendUnchanged sends data on an unchanged stream, as far as the windows that the other side knows allow.
func (s *simulation) sendUnchanged(stream uint32, data []byte) (rest []byte) {
	n := min(len(data), defaultFrameSize, s.theirWindow, s.theirStreams[stream])
	if n <= 0 {
		return data
	}
	s.theirWindow -= n
	s.theirStreams[stream] -= n
	if s.send.takeWindow(stream, n) {
		// As the pump does.
		_ = s.send.side.write(appendFrame(nil, frameData, 0, stream, data[:n]), false)
	} else {
		s.send.enqueueUnchanged(stream, sendItem{data: bytes.Clone(data[:n])})
	}
	return data[n:]
}

// TestSenderProperty: random data on changed and unchanged streams of one connection arrives, and never more than the
// receiver accepts.
func TestSenderProperty(t *testing.T) {
	t.Parallel()
	for seed := range uint64(30) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := newReceiver(t)
			s := &simulation{
				t: t, random: rand.New(rand.NewPCG(seed, 1)), send: r.send, window: defaultWindow, theirWindow: defaultWindow,
				streams: map[uint32]int{}, unread: map[uint32]int{}, got: map[uint32][]byte{}, theirStreams: map[uint32]int{},
			}
			want, left := map[uint32][]byte{}, map[uint32][]byte{}
			for stream := uint32(1); stream < 12; stream += 2 {
				s.streams[stream], s.theirStreams[stream] = defaultWindow, defaultWindow
				data := make([]byte, s.random.IntN(400_000))
				for i := range data {
					data[i] = byte(s.random.Uint32())
				}
				want[stream], left[stream] = data, data
				if isChanged(stream) {
					r.send.openQueue(stream, &sendQueue{})
					r.send.stopPassing(stream)
				}
			}
			go func() {
				for f := range r.frames {
					s.receive(f.stream, []byte(f.payload))
				}
			}()

			deadline := time.Now().Add(testTimeout)
			for arrived := 0; arrived < len(want); {
				for stream := uint32(1); stream < 12; stream += 2 {
					data := left[stream]
					switch {
					case len(data) == 0 || s.random.IntN(3) == 0:
					case isChanged(stream):
						n := min(len(data), s.random.IntN(100_000))
						r.send.enqueue(stream, sendItem{data: bytes.Clone(data[:n])})
						left[stream] = data[n:]
					default:
						left[stream] = s.sendUnchanged(stream, data)
					}
				}
				s.grant(s.random.IntN(4) == 0)
				s.mu.Lock()
				arrived = 0
				for stream, data := range want {
					if len(s.got[stream]) == len(data) {
						arrived++
					}
				}
				s.mu.Unlock()
				if time.Now().After(deadline) {
					t.Fatalf("%d of %d streams have arrived", arrived, len(want))
				}
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			for stream, data := range want {
				if !bytes.Equal(s.got[stream], data) {
					t.Errorf("stream %d arrived in another order", stream)
				}
			}
		})
	}
}

// isChanged reports whether a stream of the simulation is changed.
func isChanged(stream uint32) bool { return stream%4 == 1 }

// TestSenderQueued: bytes of unchanged streams that wait for the window count as sent by the other side, and it is told
// how many were discarded.
func TestSenderQueued(t *testing.T) {
	t.Parallel()
	w := newReceiver(t).send
	w.openQueue(1, &sendQueue{})
	w.stopPassing(1)
	w.openQueue(5, &sendQueue{})
	w.enqueue(1, sendItem{data: make([]byte, defaultWindow)})
	for deadline := time.Now().Add(testTimeout); w.takeWindow(3, 1); time.Sleep(time.Millisecond) {
		w.returnWindow(3, 1)
		if time.Now().After(deadline) {
			t.Fatal("the window is not used up")
		}
	}
	w.enqueueUnchanged(3, sendItem{data: make([]byte, 45_000)})
	if !w.canWithhold(5, 1000, 1000) || w.canWithhold(5, 1000, 10_000) {
		t.Error("the queued bytes are not counted")
	}
	w.windowUpdate(0, 5000)
	if n := w.dropQueue(3); n < 40_000 || n > 45_000 {
		t.Errorf("%d bytes were discarded", n)
	}
	if w.dropQueue(1); w.queued != 0 {
		t.Errorf("%d bytes are queued", w.queued)
	}
}
