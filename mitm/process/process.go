// Package process finds the program at the other end of a connection from this machine,
// and the user that it belongs to. The proxy records the program with each exchange, and
// refuses connections of other users.
//
//	finder := process.NewFinder()
//	defer finder.Close()
//	...
//	recorder := finder.Recorder(conn, nil, store) // at once; the program is looked for meanwhile
//	recording, err := recorder.Begin(exchange)
//
// On Linux the kernel is asked for the socket at the other end (sock_diag), which has a
// user and an inode, and /proc for the process that has this inode open. The second takes
// a while on a machine with many processes, so one goroutine does it for all connections
// that wait, and begins with the programs that it has found before. An exchange that ends
// before that ends in the capture a little later; the traffic never waits.
//
// A Table keeps the programs of connections for who learns of their exchanges later, from
// packets.
//
// The kernel answers for one network namespace. For connections within another one, a
// program in there calls OpenSockets and hands the file over, of which NewSockets makes
// the Sockets for Recorder and Table.Add.
//
// Limits: on other systems, and for a connection from another machine, nothing is known.
// Without the right to look into other users' processes only the user is known. If several
// processes share a socket, one of them is found.
//
// Source: sock_diag(7), proc_pid_fd(5)
package process

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"unwire/captures"
)

const (
	// maxWaiting bounds the connections that wait for a search: more stay unknown.
	maxWaiting = 4096

	// searchTime bounds a search through /proc.
	searchTime = 250 * time.Millisecond
)

// A Finder finds the programs of connections. Its methods may be called from several
// goroutines.
type Finder struct {
	own    Sockets
	search search

	mu      sync.Mutex
	idle    sync.Cond // no search runs
	waiting []*lookup
	running bool
}

// Sockets are the sockets of a network namespace. The zero value is this program's own.
type Sockets struct{ questioner questioner }

// OpenSockets returns the file of which NewSockets makes the Sockets of the network
// namespace that this program is in.
func OpenSockets() (*os.File, error) { return openQuestions() }

// NewSockets returns the sockets of the network namespace in which a file was opened by
// OpenSockets. Close closes the file.
func NewSockets(file *os.File) *Sockets { return &Sockets{questioner{file: file}} }

// Close has nothing found any more.
func (s *Sockets) Close() { s.questioner.close() }

// NewFinder returns a Finder for connections of this program's own network.
func NewFinder() *Finder {
	f := new(Finder)
	f.idle.L = &f.mu
	return f
}

// ErrGone says that the socket at the other end of a connection is closed, or is not on
// this machine.
var ErrGone = errors.New("process: the other end of the connection is gone, or is not on this machine")

// User returns the id of the user whose socket is at the other end of a connection.
//
// Errors: ErrGone; others if the system does not tell.
func (f *Finder) User(conn net.Conn) (uid uint32, err error) {
	s, err := f.own.questioner.socketOf(conn)
	return s.uid, err
}

// IsDescendant reports whether the program at the other end of a connection was started by
// this one, or by a program that this one has started and that still runs. It waits for
// the search.
func (f *Finder) IsDescendant(conn net.Conn) bool {
	found := make(chan int, 1)
	f.start(conn, &f.own).then(func(p captures.Process) { found <- p.PID })
	return descends(<-found)
}

// Recorder returns a recorder that records the program at the other end of a connection
// with each exchange, and the client version of each request. The program is looked for
// among the sockets; nil: those of this program's own network.
func (f *Finder) Recorder(conn net.Conn, sockets *Sockets, to captures.Recorder) *Recorder {
	if sockets == nil {
		sockets = &f.own
	}
	return &Recorder{to: to, lookup: f.start(conn, sockets)}
}

// Wait waits until all searches have ended, so that no exchange waits for one.
func (f *Finder) Wait() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.running {
		f.idle.Wait()
	}
}

// Close frees what the Finder has open.
func (f *Finder) Close() {
	f.Wait()
	f.own.Close()
}

// start begins to look for the program of a connection.
func (f *Finder) start(conn net.Conn, sockets *Sockets) *lookup {
	s, err := sockets.questioner.socketOf(conn)
	if err != nil || !mayInspect(s) {
		return &lookup{done: true}
	}
	l := &lookup{socket: s}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.waiting) >= maxWaiting {
		l.done = true
		return l
	}
	f.waiting = append(f.waiting, l)
	if !f.running {
		f.running = true
		go f.run()
	}
	return l
}

// run searches until nobody waits.
func (f *Finder) run() {
	for {
		f.mu.Lock()
		batch := f.waiting
		f.waiting = nil
		if len(batch) == 0 {
			f.running = false
			f.idle.Broadcast()
			f.mu.Unlock()
			return
		}
		f.mu.Unlock()

		wanted := make(map[uint32][]*lookup, len(batch))
		for _, l := range batch {
			wanted[l.socket.inode] = append(wanted[l.socket.inode], l)
		}
		f.search.find(time.Now().Add(searchTime), wanted)
		for _, l := range batch {
			l.finish(captures.Process{}) // unless it was found
		}
	}
}

// A socket is what the kernel says of the other end of a connection.
type socket struct{ uid, inode uint32 }

// A lookup is the search for the program of one connection.
type lookup struct {
	socket socket

	mu      sync.Mutex
	done    bool
	process captures.Process

	// pending are called in their order when the lookup is done.
	pending []func(captures.Process)
}

// found returns the process, if the lookup is done.
func (l *lookup) found() (p captures.Process, done bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.process, l.done
}

// then calls f with the process: now, or when it is found. The calls are in order.
func (l *lookup) then(f func(captures.Process)) {
	l.mu.Lock()
	if !l.done {
		l.pending = append(l.pending, f)
		l.mu.Unlock()
		return
	}
	p := l.process
	l.mu.Unlock()
	f(p)
}

// finish ends the lookup. Only the first call counts.
func (l *lookup) finish(p captures.Process) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done {
		return
	}
	// Under the lock, so that a later call of then comes after these. They only hand
	// over to the store.
	for _, f := range l.pending {
		f(p)
	}
	l.done, l.process, l.pending = true, p, nil
}
