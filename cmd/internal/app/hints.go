package app

import (
	"errors"
	"io/fs"
	"path/filepath"
	"syscall"

	"unwire/captures"
	"unwire/captures/budget"
	"unwire/captures/store"
	"unwire/decode/text"
	"unwire/replay"
	"unwire/replay/credential"
	"unwire/schema"
	"unwire/schema/extract"
)

// costHint returns the hint for an error about input that exceeds the limits for memory or time; "" for
// other errors.
func costHint(err error) string {
	switch {
	case errors.Is(err, budget.ErrExceeded):
		return "run the command for fewer files at a time"
	case errors.Is(err, extract.ErrTooManyDefinitions):
		return "if you trust the file, unpack it first, and run the command for the unpacked files"
	}
	return ""
}

// credentialsHint returns what to do about a missing secret: of a captured request, or of a reference.
func credentialsHint(err error) string {
	if errors.Is(err, credential.ErrNotRecorded) {
		return "secrets in the capture are redacted: provide the secret in the environment or with --credentials"
	}
	return "set the environment variable, or tell unwire with --credentials where the secret is: FILE, env:VARIABLE or keyring:SERVICE/ACCOUNT"
}

// hintFor returns a hint for the most frequent errors, such as a missing CA or a file that is not a
// capture; "" for others.
func hintFor(err error) string {
	// A syntax error has a hint of its own, which refers to the text at the error.
	var syntax *text.Error
	if errors.As(err, &syntax) {
		return syntax.Hint
	}
	if hint := costHint(err); hint != "" {
		return hint
	}
	_, limited := errors.AsType[*store.LimitError](err)

	// The most specific errors come first: an error may wrap several of these.
	switch {
	case limited:
		return "the result covers only the data before the limit; if you trust the file, set " + maxReadVariable + " to a higher limit, such as 20GB"
	case errors.Is(err, captures.ErrNoExchange):
		return "'unwire ls F.uwc' lists the exchanges"
	case errors.Is(err, captures.ErrNoFolder):
		return "create the folder first, or name another one"
	case errors.Is(err, captures.ErrNewerFormat):
		return "use a newer version of unwire, or record again with this version"
	case errors.Is(err, captures.ErrNotCapture):
		return "'unwire capture -o F.uwc' records a capture"
	case errors.Is(err, captures.ErrDamaged):
		return "the output covers the readable part of the file; the rest is lost"
	case errors.Is(err, captures.ErrInUse):
		return "stop the other unwire process that records to this file, or record to another file"
	case errors.Is(err, captures.ErrOlderFormat):
		return "run 'unwire capture -o' with this file once: this converts the file to the current format"
	case errors.Is(err, credential.ErrExpired):
		return "get a new token; with an API key, 'unwire replay --refresh' gets a new one"
	case errors.Is(err, credential.ErrCredentials):
		return credentialsHint(err)
	case errors.Is(err, replay.ErrTransport):
		return "'unwire show' prints the exchange"
	case errors.Is(err, schema.ErrNoFiles):
		return "name a folder with .proto files, a .proto file, a descriptor set, or a capture that contains definitions"
	case errors.Is(err, fs.ErrNotExist):
		if pe, ok := errors.AsType[*fs.PathError](err); ok && filepath.Ext(pe.Path) != ".uwc" {
			return "check the file name"
		}
		return "check the file name; 'unwire capture -o F.uwc' records a capture"
	case errors.Is(err, syscall.ENOSPC):
		return "free some space, or write to another disk"
	case errors.Is(err, fs.ErrPermission):
		return "check the file's permissions"
	}
	return ""
}
