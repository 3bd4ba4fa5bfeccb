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

// Export writes a capture as JSON Lines, one line per exchange, and returns the number of lines.
//
// Limits: one page of chunks is in memory at a time. Errors: those of src and of w. The output is then
// incomplete.
func Export(ctx context.Context, w io.Writer, src transfer.Source) (int, error) {
	out := bufio.NewWriterSize(w, 1<<16)
	n := 0

	// Load these once, instead of for each exchange.
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
			if h.Rewritten, err = src.Rewritten(ctx, ex.ID); err == nil {
				err = writeLine(ctx, out, src, ex, h)
			}
		}
		if err != nil {
			return n, fmt.Errorf("jsonl: the export failed after %d exchanges: %w", n, err)
		}
		n++
	}
	if err := out.Flush(); err != nil {
		return n, fmt.Errorf("jsonl: %w", err)
	}
	return n, nil
}

// writeLine writes one exchange as a line of JSON: the members in h, then the chunks, read from src.
func writeLine(ctx context.Context, out *bufio.Writer, src transfer.Source, ex *captures.Exchange, h head) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(h); err != nil {
		return err
	}

	// Replace the end of the head's object by the chunks, written one by one.
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
