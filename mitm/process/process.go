// Package process finds the local program at the other end of a connection, and its user. The proxy records the
// program with each exchange, and refuses connections of other users.
//
//	finder := process.NewFinder()
//	defer finder.Close()
//	...
//	recorder := finder.Recorder(conn, nil, store) // returns at once; the search runs in the background
//	recording, err := recorder.Begin(exchange)
//
// On Linux, the kernel returns the user and the inode of the socket (sock_diag), and /proc shows which process
// has that inode open. Searching /proc takes time, so one goroutine searches for all waiting connections,
// beginning with programs that were found before. If an exchange ends before its program is known, its end is
// recorded a little later; traffic never waits.
//
// A Table stores the programs of connections for a recorder that learns of the exchanges later, from packets.
//
// The kernel answers for one network namespace. For another one, a process inside it calls OpenSockets and
// passes the file, from which NewSockets creates the Sockets for Recorder and Table.Add.
//
// Limits: on other systems, and for connections from other machines, nothing is found. Without permission to
// inspect the processes of other users, only the user is found. If several processes share a socket, one of them
// is found.
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
	// maxWaiting limits the connections that wait for their client program to be found. The programs of further
	// connections stay unknown.
	maxWaiting = 4096

	// searchTime limits the duration of one search through /proc.
	searchTime = time.Second
)

// A Finder finds the client programs of connections. Its methods may be called from several goroutines.
type Finder struct {
	// own are the sockets in the network namespace of this process.
	own Sockets
	// search finds the program that has opened a socket.
	search search

	// mu guards waiting and running.
	mu sync.Mutex
	// idle is signalled when a search has ended.
	idle sync.Cond

	// waiting are the lookups for the next search.
	waiting []*lookup
	// running means that a search is running at the moment.
	running bool
}

// A Sockets gives access to the sockets of a network namespace. The zero value is that of this process.
type Sockets struct {
	// questioner queries the kernel for the sockets of the namespace.
	questioner questioner
}

// OpenSockets opens the file for NewSockets. It refers to the network namespace of the calling process.
func OpenSockets() (*os.File, error) { return openQuestions() }

// NewSockets returns the sockets of the network namespace in which OpenSockets has opened file. Close closes it.
func NewSockets(file *os.File) *Sockets { return &Sockets{questioner{file: file}} }

// Close ends the lookups of sockets in this network namespace.
func (s *Sockets) Close() { s.questioner.close() }

// NewFinder returns a Finder for the network namespace of this process.
func NewFinder() *Finder {
	f := new(Finder)
	f.idle.L = &f.mu
	return f
}

// ErrGone means that the socket at the other end of a connection is closed, or is on another machine.
var ErrGone = errors.New("process: the other end of the connection is closed, or is not on this machine")

// User returns the numeric id of the user who owns the socket at the other end of a connection.
//
// Errors: ErrGone; others if the system does not provide the user.
func (f *Finder) User(conn net.Conn) (uid uint32, err error) {
	s, err := f.own.questioner.socketOf(conn)
	return s.uid, err
}

// IsDescendant reports whether the program at the other end of a connection was started by this process,
// directly or by programs that are still running. It waits until the program was searched for.
func (f *Finder) IsDescendant(conn net.Conn) bool {
	found := make(chan int, 1)
	f.start(conn, &f.own).then(func(p captures.Process) { found <- p.PID })
	return descends(<-found)
}

// Recorder returns a recorder that passes exchanges to the recorder to, with the client program of the
// connection conn and the client's version added. The program is looked up in sockets; nil means the network
// namespace of this process.
func (f *Finder) Recorder(conn net.Conn, sockets *Sockets, to captures.Recorder) *Recorder {
	if sockets == nil {
		sockets = &f.own
	}
	return &Recorder{to: to, lookup: f.start(conn, sockets)}
}

// Wait waits until no search is running.
func (f *Finder) Wait() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.running {
		f.idle.Wait()
	}
}

// Close releases the resources of the Finder.
func (f *Finder) Close() {
	f.Wait()
	f.own.Close()
}

// start starts looking for the client program of a connection.
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

// run searches for the processes of all waiting lookups, until none is waiting.
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
			// This has no effect if the program was found.
			l.finish(captures.Process{})
		}
	}
}

// A socket contains the kernel's data about a socket: the id of its user, and its inode.
type socket struct {
	// uid is the id of the user who owns the socket.
	uid uint32
	// inode is the number of the socket's inode, by which its program is found.
	inode uint32
}

// A lookup is the search for the client program of one connection, with its result.
type lookup struct {
	// socket is the client's socket of the connection.
	socket socket

	// mu guards the fields below.
	mu sync.Mutex

	// done means that the search has ended.
	done bool
	// process is the program that was found, once done is set; zero if it was not found.
	process captures.Process

	// pending are called in order when the lookup is done.
	pending []func(captures.Process)
}

// found returns the client program if the lookup has ended.
func (l *lookup) found() (p captures.Process, done bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.process, l.done
}

// then calls f with the client program, now or when the lookup ends. Calls are made in order.
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

// finish ends the lookup with the result p. Only the first call has an effect.
func (l *lookup) finish(p captures.Process) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done {
		return
	}
	// The functions are called under the lock, so that calls of then stay in order. They only pass data to the
	// store.
	for _, f := range l.pending {
		f(p)
	}
	l.done, l.process, l.pending = true, p, nil
}
