package formats

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/captures/har"
	"unwire/captures/jsonl"
	"unwire/captures/parquet"
	"unwire/captures/pcapng"
	"unwire/captures/raw"
	"unwire/captures/transfer"
	"unwire/decode"
)

// ExportOptions say how a capture is written.
type ExportOptions struct {
	// Creator is the version of the program, which a HAR names.
	Creator string

	// Name is the capture's, which a pcapng file names.
	Name string

	// Type finds the message type of a call's frames; nil: none has one.
	Type func(decode.Call, captures.Direction) protoreflect.MessageDescriptor
}

// Exported counts what was written. What a format does not have is 0.
type Exported struct {
	Exchanges, Frames, Fields int

	// Omitted counts exchanges whose bodies are too large for the format.
	Omitted int

	// Connections without HTTP that the format has no place for, WebSockets without their
	// handshakes, and exchanges whose program is known and not written.
	NotHTTP, NoHandshake, Unnamed int

	// LeftOut counts exchanges that have no packets, Reframed bodies that are sent in
	// chunks for want of a true length.
	LeftOut, Reframed int

	Connections int
	Packets     int64
}

// An Exporter writes captures in one format: as a stream, or into a folder.
type Exporter struct {
	Name string

	// empty says that its folder must not have files yet.
	empty bool

	stream func(ctx context.Context, w io.Writer, src transfer.Source, o ExportOptions) (Exported, error)
	folder func(ctx context.Context, dir string, src transfer.Source, o ExportOptions) (Exported, error)
}

// Exporters are the formats that captures are written in.
func Exporters() []Exporter {
	return []Exporter{
		{Name: "har", stream: exportHAR},
		{Name: "jsonl", stream: exportJSONL},
		{Name: "raw", empty: true, folder: exportRaw},
		{Name: "parquet", folder: exportParquet},
		{Name: "pcapng", stream: exportPackets},
	}
}

// IsFolder reports whether the format is a folder of files.
func (e *Exporter) IsFolder() bool { return e.folder != nil }

// CheckFolder checks the folder that an export is to become.
//
// Errors: raw.ErrNotEmpty, of a format that adds to no folder.
func (e *Exporter) CheckFolder(dir string) error {
	if !e.empty {
		return nil
	}
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return fmt.Errorf("%s: %s %w", e.Name, dir, raw.ErrNotEmpty)
	}
	return nil
}

// Write writes a capture as a stream.
func (e *Exporter) Write(ctx context.Context, w io.Writer, src transfer.Source, o ExportOptions) (Exported, error) {
	return e.stream(ctx, w, src, o)
}

// WriteFolder writes a capture into an empty folder.
func (e *Exporter) WriteFolder(ctx context.Context, dir string, src transfer.Source, o ExportOptions) (Exported, error) {
	return e.folder(ctx, dir, src, o)
}

func exportHAR(ctx context.Context, w io.Writer, src transfer.Source, o ExportOptions) (Exported, error) {
	done, err := har.Export(ctx, w, src, har.Options{Creator: o.Creator, Type: o.Type})
	return Exported{Exchanges: done.Exchanges, Omitted: done.Omitted, NotHTTP: done.LeftOut}, err
}

func exportJSONL(ctx context.Context, w io.Writer, src transfer.Source, _ ExportOptions) (Exported, error) {
	n, err := jsonl.Export(ctx, w, src)
	return Exported{Exchanges: n}, err
}

func exportPackets(ctx context.Context, w io.Writer, src transfer.Source, o ExportOptions) (Exported, error) {
	done, err := pcapng.Export(ctx, w, src, pcapng.Options{Name: o.Name})
	return Exported{
		Exchanges: done.Exchanges, Connections: done.Connections, Packets: done.Packets, LeftOut: done.LeftOut, Reframed: done.Reframed,
		NoHandshake: done.NoHandshake, Unnamed: done.Unnamed,
	}, err
}

func exportRaw(ctx context.Context, dir string, src transfer.Source, _ ExportOptions) (Exported, error) {
	done, err := raw.Export(ctx, dir, src)
	return Exported{Exchanges: done.Exchanges, Frames: done.Frames}, err
}

func exportParquet(ctx context.Context, dir string, src transfer.Source, o ExportOptions) (Exported, error) {
	var done parquet.Written
	err := createFile(filepath.Join(dir, "frames.parquet"), func(frames io.Writer) error {
		return createFile(filepath.Join(dir, "fields.parquet"), func(fields io.Writer) (err error) {
			done, err = parquet.Export(ctx, frames, fields, src, parquet.Options{Type: o.Type})
			return err
		})
	})
	return Exported{Exchanges: done.Exchanges, Frames: done.Frames, Fields: done.Fields}, err
}

// createFile has write fill a new file that its owner alone can read.
func createFile(name string, write func(io.Writer) error) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	return errors.Join(write(w), w.Flush(), f.Close())
}
