package jsonl

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"unwire/captures"
	"unwire/captures/transfer"
)

// Export writes a capture, a line an exchange, and returns how many there were.
//
// Limits: it holds a page of chunks at a time. Errors: of src and of w, with
// the exchange; what had been written by then is not whole.
func Export(ctx context.Context, w io.Writer, src transfer.Source) (int, error) {
	out := bufio.NewWriterSize(w, 1<<16)
	n := 0
	relations, err := transfer.LoadRelations(ctx, src)
	if err != nil {
		return 0, fmt.Errorf("jsonl: %w", err)
	}
	notes, err := transfer.LoadNotes(ctx, src)
	if err != nil {
		return 0, fmt.Errorf("jsonl: %w", err)
	}
	for ex, err := range src.Exchanges(ctx) {
		if err == nil {
			h := headOf(ex)
			h.Relations, h.Notes = relations.JSON(ex.ID), notes.JSON(ex.ID)
			err = writeLine(ctx, out, src, ex, h)
		}
		if err != nil {
			return n, fmt.Errorf("jsonl: after %d exchanges: %w", n, err)
		}
		n++
	}
	if err := out.Flush(); err != nil {
		return n, fmt.Errorf("jsonl: %w", err)
	}
	return n, nil
}

func writeLine(ctx context.Context, out *bufio.Writer, src transfer.Source, ex *captures.Exchange, h head) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(h); err != nil {
		return err
	}
	line := append(bytes.TrimSuffix(b.Bytes(), []byte("}\n")), `,"chunks":[`...)
	first := true
	for c, err := range src.Chunks(ctx, ex.ID, 0) {
		if err != nil {
			return err
		}
		if !first {
			line = append(line, ',')
		}
		first = false
		line = appendChunk(line, c, ex.Transport == captures.WebSocket)
		if _, err := out.Write(line); err != nil {
			return err
		}
		line = line[:0]
	}
	_, err := out.Write(append(line, "]}\n"...))
	return err
}
