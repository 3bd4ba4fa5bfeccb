package rows

import (
	"unwire/captures"
	"unwire/captures/store/internal/engine"
)

const (
	// insertEdit and insertHead are the SQL statements that record forwarded data that differs from the
	// received data.
	insertEdit = `INSERT INTO edits (n, exchange, dir, start_off, end_off, t_ns, rule, size, blob, data) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	insertHead = `INSERT OR REPLACE INTO forwarded_heads (n, exchange, dir, rule, method, url, status, headers, trailers) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`
)

// edits contains the prepared statements insertEdit and insertHead.
type edits struct {
	// insert is the statement that inserts a replaced range of body bytes.
	insert *engine.Stmt
	// insertHead is the statement that inserts the head of a forwarded message that differs from the received
	// one.
	insertHead *engine.Stmt
}

// Edit inserts an edit, with n as its row number.
func (w *Writer) Edit(n int64, e *captures.Edit) error {
	// Large data is stored once, as bodies are.
	var blob int64
	if len(e.Data) >= blobThreshold {
		var err error
		if blob, err = w.segments.blobs.put(e.Data, w.segments.blobs.pack.Pack); err != nil {
			return err
		}
	}
	s := w.edits.insert
	s.Int(n)
	s.Int(e.Exchange)
	s.Int(int64(e.Dir))
	s.Int(e.Start)
	s.Int(e.End)
	s.Int(int64(e.T))
	s.Text(e.Rule)
	s.Int(int64(len(e.Data)))
	if blob != 0 {
		s.Int(blob)
		s.Null()
	} else {
		s.Null()
		s.Blob(e.Data)
	}
	return s.Run()
}

// ForwardedHead inserts a forwarded head, with n as its row number.
func (w *Writer) ForwardedHead(n int64, h *captures.ForwardedHead) error {
	headers, err := w.sections.store(h.Headers)
	if err != nil {
		return err
	}
	trailers, err := w.sections.store(h.Trailers)
	if err != nil {
		return err
	}
	s := w.edits.insertHead
	s.Int(n)
	s.Int(h.Exchange)
	s.Int(int64(h.Dir))
	s.Text(h.Rule)
	s.Text(h.Method)
	s.Text(h.URL)
	s.Int(int64(h.Status))
	s.Int(headers)
	s.Int(trailers)
	return s.Run()
}
