package ui

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
)

// A probeRun is the probe that runs or ran last. At most one runs at a time.
type probeRun struct {
	// mu guards the fields below.
	mu sync.Mutex

	// cancel ends the probe; nil before the first.
	cancel context.CancelFunc

	// journal is the path of the probe's journal, in a temporary folder of its own; "" before the first.
	journal string

	// running means that the probe has not ended.
	running bool

	// result is the line that the probe printed as its result; nil if there is none.
	result json.RawMessage

	// said is what the probe printed on stderr.
	said string
}

// end stops the probe and removes its journal.
func (p *probeRun) end() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cancel != nil {
		p.cancel()
	}
	if p.journal == "" {
		return nil
	}
	return os.RemoveAll(filepath.Dir(p.journal))
}
