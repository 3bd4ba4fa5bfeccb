// Package formats registers the foreign formats in which captures can be imported and exported. The commands
// import and export use it.
//
// Open detects the format of a file, which may be compressed, and Input.Import adds its exchanges to a capture.
// An Exporter writes a capture to a stream or into a folder.
//
//	in, err := formats.Open(file, head) // head: the first formats.HeadBytes of the file
//	done, err := in.Import(ctx, formats.ImportOptions{Store: target})
//
// Each format is a package below captures/ with an entry in one of the two tables, importers and Exporters.
// Compressed files are decompressed while they are read.
package formats
