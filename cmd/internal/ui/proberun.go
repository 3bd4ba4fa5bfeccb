package ui

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
)

// A probeRun is a probe that runs or has ended. There is one at a time.
type probeRun struct {
	mu      sync.Mutex
	cancel  context.CancelFunc
	journal string
	running bool
	result  json.RawMessage
	said    string
}

// end stops a probe and removes its journal.
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
