package store

import (
	"bytes"
	"context"
	"time"

	"unwire/captures"
	"unwire/captures/redact"
	"unwire/captures/store/internal/payload"
)

// maxRuleName limits the stored name of a rewriting rule, in bytes.
const maxRuleName = 256

// Edit records that a rule replaced received bytes before they were forwarded; see captures.Recording. The
// replacement is redacted like the received bytes.
func (r *recording) Edit(dir captures.Direction, start, end int64, rule string, data []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	e := &captures.Edit{
		Exchange: r.ex.ID, Dir: dir, Start: start, End: end, T: r.startOffset + time.Since(r.start),
		Rule: limitRule(rule), Data: bytes.Clone(data[:min(len(data), payload.MaxSize)]),
	}
	r.redactEdit(e)
	_ = r.store.writer.enqueue(op{edit: e, cost: int64(len(e.Data))})
}

// limitRule truncates the name of a rule to maxRuleName bytes.
func limitRule(name string) string { return name[:min(len(name), maxRuleName)] }

// redactEdit replaces the secrets in an edit's data by placeholders, unless secrets are kept.
func (r *recording) redactEdit(e *captures.Edit) {
	if r.store.Redactor == nil || len(e.Data) == 0 {
		return
	}
	filter := redact.NewMessageFilter(r.store.Redactor)
	if r.ex.Transport != captures.WebSocket {
		h := r.ex.RequestHeaders
		if e.Dir == captures.Down {
			h = r.ex.ResponseHeaders
		}
		filter = redact.NewBodyFilter(r.store.Redactor, h, r.ex.URL)
	}
	filter.Write(&captures.Chunk{Dir: e.Dir, Data: e.Data})
	filter.Close(false)
	var out []byte
	for _, c := range filter.Ready() {
		out = append(out, c.Data...)
	}
	e.Data = out
}

// ForwardHead records the HTTP head of one direction as it was forwarded; see captures.Recording.
func (r *recording) ForwardHead(dir captures.Direction, rule string, h captures.ForwardedHead) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	h.Exchange, h.Dir, h.Rule = r.ex.ID, dir, limitRule(rule)
	h.Headers, h.Trailers = r.storedSection(h.Headers), r.storedSection(h.Trailers)
	if r.store.Redactor != nil && h.URL != "" {
		h.URL = r.store.Redactor.Exchange(captures.Exchange{URL: h.URL}).URL
	}
	_ = r.store.writer.enqueue(op{head: &h, cost: int64(sectionSize(h.Headers) + sectionSize(h.Trailers))})
}

// copyForwarded copies the edits and forwarded heads of the exchange of r from the capture from. Edits of bytes
// that are not in this capture are omitted.
func (s *Store) copyForwarded(ctx context.Context, from *Store, r *recording) error {
	edits, err := from.Edits(ctx, r.ex.ID)
	if err != nil {
		return err
	}
	for _, e := range edits {
		r.redactEdit(&e)
		_ = s.writer.enqueue(op{edit: &e, cost: int64(len(e.Data))})
	}
	heads, err := from.ForwardedHeads(ctx, r.ex.ID)
	if err != nil {
		return err
	}
	for _, h := range heads {
		r.ForwardHead(h.Dir, h.Rule, h)
	}
	return nil
}
