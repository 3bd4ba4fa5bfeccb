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

// ExportOptions are the options for exporting a capture.
type ExportOptions struct {
	// Creator is the version of unwire, which is written into HAR files.
	Creator string

	// Name is the name of the capture that a pcapng file contains.
	Name string

	// MaxFiles is the maximum number of files of an export that writes one file per frame.
	MaxFiles int

	// Type returns the protobuf message type of the frames of a call in one direction, or nil if unknown. If
	// Type is nil, exported fields have no names.
	Type func(decode.Call, captures.Direction) protoreflect.MessageDescriptor
}

// ExportResult contains the numbers of elements that an export wrote or left out. A counter that does not apply
// to the format is 0.
type ExportResult struct {
	// Exchanges is the number of exchanges that were written.
	Exchanges int
	// Frames is the number of frames (messages or events) that were written; 0 for formats without frames.
	Frames int
	// Fields is the number of protobuf fields that were written; 0 for formats without fields.
	Fields int

	// BodiesOmitted counts exchanges whose bodies are too large for the format.
	BodiesOmitted int

	// NotHTTP is the number of connections without HTTP, which the format cannot represent.
	NotHTTP int
	// NoHandshake is the number of WebSockets that were not written because their handshake is not in the
	// capture.
	NoHandshake int
	// WithoutProcess is the number of exchanges whose client program is known but could not be written to the
	// file.
	WithoutProcess int

	// WithoutPackets is the number of exchanges that could not be written to a pcapng file.
	WithoutPackets int
	// Reframed is the number of bodies that are written with chunked encoding in a pcapng file, because their
	// declared length is wrong.
	Reframed int

	// Connections is the number of TCP connections in a written pcapng file; 0 for other formats.
	Connections int
	// Packets is the number of packets in a written pcapng file; 0 for other formats.
	Packets int64
}

// An Exporter writes captures in one format: to a stream, or into a folder.
type Exporter struct {
	// Name is the name of the format in the flag --format.
	Name string

	// needsEmptyFolder is set for formats that refuse a folder with files in it.
	needsEmptyFolder bool

	// stream writes a capture in a format that is a single file; nil if the format is a folder.
	stream func(ctx context.Context, w io.Writer, src transfer.Source, o ExportOptions) (ExportResult, error)
	// folder writes a capture as files in the folder dir; nil if the format is a single file.
	folder func(ctx context.Context, dir string, src transfer.Source, o ExportOptions) (ExportResult, error)
}

// Exporters returns the formats in which captures can be written.
func Exporters() []Exporter {
	return []Exporter{
		{Name: "har", stream: exportHAR},
		{Name: "jsonl", stream: exportJSONL},
		{Name: "raw", needsEmptyFolder: true, folder: exportRaw},
		{Name: "parquet", folder: exportParquet},
		{Name: "pcapng", stream: exportPackets},
	}
}

// IsFolder reports whether the format consists of several files in a folder.
func (e *Exporter) IsFolder() bool { return e.folder != nil }

// CheckFolder checks, before an export, that the format can be written into a folder.
//
// Errors: raw.ErrNotEmpty.
func (e *Exporter) CheckFolder(dir string) error {
	if !e.needsEmptyFolder {
		return nil
	}
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return fmt.Errorf("the format %s needs an empty folder, but %s %w", e.Name, dir, raw.ErrNotEmpty)
	}
	return nil
}

// Write writes a capture to a stream. It must be called only if IsFolder is false.
func (e *Exporter) Write(ctx context.Context, w io.Writer, src transfer.Source, o ExportOptions) (ExportResult, error) {
	return e.stream(ctx, w, src, o)
}

// WriteFolder writes a capture into a folder. It must be called only if IsFolder is true.
func (e *Exporter) WriteFolder(ctx context.Context, dir string, src transfer.Source, o ExportOptions) (ExportResult, error) {
	return e.folder(ctx, dir, src, o)
}

// exportHAR writes a capture as a HAR file.
func exportHAR(ctx context.Context, w io.Writer, src transfer.Source, o ExportOptions) (ExportResult, error) {
	done, err := har.Export(ctx, w, src, har.Options{Creator: o.Creator, Type: o.Type})
	return ExportResult{Exchanges: done.Exchanges, BodiesOmitted: done.BodiesOmitted, NotHTTP: done.NotHTTP}, err
}

// exportJSONL writes a capture as JSON Lines, one line per exchange.
func exportJSONL(ctx context.Context, w io.Writer, src transfer.Source, _ ExportOptions) (ExportResult, error) {
	n, err := jsonl.Export(ctx, w, src)
	return ExportResult{Exchanges: n}, err
}

// exportPackets writes a capture as a pcapng file with reconstructed packets.
func exportPackets(ctx context.Context, w io.Writer, src transfer.Source, o ExportOptions) (ExportResult, error) {
	done, err := pcapng.Export(ctx, w, src, pcapng.Options{Name: o.Name})
	return ExportResult{
		Exchanges: done.Exchanges, Connections: done.Connections, Packets: done.Packets, WithoutPackets: done.WithoutPackets, Reframed: done.Reframed,
		NoHandshake: done.NoHandshake, WithoutProcess: done.WithoutProcess,
	}, err
}

// exportRaw writes the bodies and frames of a capture as files in the folder dir.
func exportRaw(ctx context.Context, dir string, src transfer.Source, o ExportOptions) (ExportResult, error) {
	done, err := raw.Export(ctx, dir, src, o.MaxFiles)
	return ExportResult{Exchanges: done.Exchanges, Frames: done.Frames}, err
}

// exportParquet writes the frames and fields of a capture as two Parquet files in the folder dir.
func exportParquet(ctx context.Context, dir string, src transfer.Source, o ExportOptions) (ExportResult, error) {
	var done parquet.Result

	// Both files are created before anything is written.
	err := createFile(filepath.Join(dir, "frames.parquet"), func(frames io.Writer) error {
		return createFile(filepath.Join(dir, "fields.parquet"), func(fields io.Writer) (err error) {
			done, err = parquet.Export(ctx, frames, fields, src, parquet.Options{Type: o.Type})
			return err
		})
	})
	return ExportResult{Exchanges: done.Exchanges, Frames: done.Frames, Fields: done.Fields}, err
}

// createFile creates a file that only its owner can read, and calls write with a buffered writer for it. It
// fails if the file exists.
func createFile(name string, write func(io.Writer) error) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	return errors.Join(write(w), w.Flush(), f.Close())
}
