package process

import (
	"net"
	"sync"

	"unwire/captures"
)

// maxTable bounds the connections of a Table: the oldest are forgotten.
const maxTable = 1 << 16

// A Table has the programs of connections for a recorder that learns of their exchanges
// later, from packets. Its methods may be called from several goroutines.
type Table struct {
	finder *Finder

	mu     sync.Mutex
	known  map[ends]*Recorder
	oldest []ends // in the order in which they were added
}

// ends are the addresses of a connection.
type ends struct{ client, server string }

// NewTable returns a table without connections.
func NewTable(f *Finder) *Table { return &Table{finder: f, known: make(map[ends]*Recorder)} }

// Add begins to look for the program at the other end of a connection, among the sockets, as
// Finder.Recorder does. A connection of the same addresses that was added before is forgotten.
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

// Target returns a target that records the program with each exchange, by the addresses of
// its client and its server, and the client version of each request.
func (t *Table) Target(to captures.Target) captures.Target { return tableTarget{to, t} }

// A tableTarget adds programs to exchanges.
type tableTarget struct {
	captures.Target

	table *Table
}

// Begin is captures.Recorder's.
func (t tableTarget) Begin(ex captures.Exchange) (captures.Recording, error) {
	t.table.mu.Lock()
	r := t.table.known[ends{ex.Client, ex.Server}]
	t.table.mu.Unlock()
	if r == nil {
		r = &Recorder{lookup: &lookup{done: true}}
	}
	return r.begin(ex, t.Target)
}
