package process

import (
	"net"
	"sync"

	"unwire/captures"
)

// maxTable limits the connections of a Table; the oldest are removed.
const maxTable = 1 << 16

// A Table stores the programs of connections for a recorder that learns of their exchanges later, from packets.
// Its methods may be called from several goroutines.
type Table struct {
	finder *Finder

	mu    sync.Mutex
	known map[ends]*Recorder
	// oldest are the keys of the table in the order in which they were added.
	oldest []ends
}

// ends are the addresses of the client and the server of a connection.
type ends struct{ client, server string }

// NewTable returns an empty Table.
func NewTable(f *Finder) *Table { return &Table{finder: f, known: make(map[ends]*Recorder)} }

// Add starts to look for the program of a connection; see Finder.Recorder. It replaces an earlier
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

// Target wraps a recorder for imports. It adds to each exchange the program of its connection, which it
// finds by the addresses, and the client's version.
func (t *Table) Target(to captures.Target) captures.Target { return tableTarget{to, t} }

// A tableTarget is a captures.Target that adds the client program to exchanges.
type tableTarget struct {
	captures.Target

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
