// Package formats are the formats of other tools that captures are read from and
// written in, as one.
//
// Open finds out the format of a file, which may be compressed, and Input.Import puts
// its exchanges into a capture. An Exporter writes a capture as a stream or into a
// folder.
//
// Import and export are a table of formats each: a format is a package below
// captures/ that is entered there. A compressed file is inflated while it is read.
package formats
