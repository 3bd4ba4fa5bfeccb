package process

import (
	"net"
	"sync"

	"unwire/captures"
)

// maxTable limits the connections in a Table; beyond that, the oldest are removed.
const maxTable = 1 << 16

// A Table stores the client programs of connections for a recorder that learns of their exchanges later, from
// packets. Its methods may be called from several goroutines.
type Table struct {
	// finder finds the client programs.
	finder *Finder

	// mu guards known and oldest.
	mu sync.Mutex

	// known maps the addresses of a connection to the recorder that knows its program; mu guards it and oldest.
	known map[ends]*Recorder
	// oldest are the keys of known in the order in which they were added.
	oldest []ends
}

// An ends identifies a connection by the addresses of its client and server, each host:port.
type ends struct {
	// client is the address of the client, host:port.
	client string
	// server is the address of the server, host:port.
	server string
}

// NewTable returns an empty Table, which finds programs with f.
func NewTable(f *Finder) *Table { return &Table{finder: f, known: make(map[ends]*Recorder)} }

// Add starts looking for the client program of a connection; see Finder.Recorder. It replaces an earlier
// connection with the same addresses.
func (t *Table) Add(conn net.Conn, sockets *Sockets) {
	r := t.finder.Recorder(conn, sockets, nil)
	key := ends{conn.RemoteAddr().String(), conn.LocalAddr().String()}
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, again := t.known[key]; !again {
		if len(t.oldest) == maxTable {
			delete(t.known, t.oldest[0])
			t.oldest = t.oldest[1:]
		}
		t.oldest = append(t.oldest, key)
	}
	t.known[key] = r
}

// Target wraps the target of an import. It adds the client's version to each exchange, and the client program
// of its connection, which it finds by the addresses.
func (t *Table) Target(to captures.Target) captures.Target { return tableTarget{to, t} }

// A tableTarget is a captures.Target that adds the client program to exchanges.
type tableTarget struct {
	// Target is the wrapped recorder of exchanges.
	captures.Target

	// table has the client programs by the addresses of the connection.
	table *Table
}

// Begin starts recording an exchange, as captures.Recorder does.
func (t tableTarget) Begin(ex captures.Exchange) (captures.Recording, error) {
	t.table.mu.Lock()
	r := t.table.known[ends{ex.Client, ex.Server}]
	t.table.mu.Unlock()
	if r == nil {
		r = &Recorder{lookup: &lookup{done: true}}
	}
	return r.begin(ex, t.Target)
}
