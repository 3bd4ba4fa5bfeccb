package front

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"unwire/replay/agent/turn"
)

// Limits of requests.
const (
	// maxBody is the limit of a request's body, in bytes.
	maxBody = 20 << 20
	// maxImage is the limit of one image, decoded, in bytes.
	maxImage = 10 << 20
	// MaxMessages is the limit of messages in a transcript.
	MaxMessages = 20_000
)

// ReadBody reads a request body that must be a JSON object, and returns its members.
//
// Errors: kind TooLarge above maxBody; kind Invalid if the body is not a JSON object (with the offset),
// is compressed, or was not sent completely.
func ReadBody(w http.ResponseWriter, r *http.Request) (map[string]json.RawMessage, *turn.Error) {
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return nil, &turn.Error{Kind: turn.Invalid, Code: "unsupported_content_encoding", Message: fmt.Sprintf("the request body is compressed (%.40q); send it uncompressed", encoding)}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return nil, &turn.Error{Kind: turn.TooLarge, Code: "request_too_large", Message: fmt.Sprintf("the request body is larger than %d MB", maxBody>>20)}
	}
	if err != nil {
		return nil, &turn.Error{Kind: turn.Invalid, Message: "the request body could not be read: " + err.Error(), Err: err}
	}

	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		return nil, invalidJSON(err)
	}
	if members == nil {
		return nil, &turn.Error{Kind: turn.Invalid, Code: "invalid_json", Message: "the request body must be a JSON object"}
	}
	return members, nil
}

// invalidJSON converts an error of parsing the request body to one for the client, with the offset if
// it is known.
func invalidJSON(err error) *turn.Error {
	message := "the request body is not valid JSON: " + err.Error()
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		message = fmt.Sprintf("the request body is not valid JSON at byte %d: %s", syntax.Offset, syntax.Error())
	}
	if kind := (*json.UnmarshalTypeError)(nil); errors.As(err, &kind) {
		message = fmt.Sprintf("the request body must be a JSON object, not a %s", kind.Value)
	}
	return &turn.Error{Kind: turn.Invalid, Code: "invalid_json", Message: message, Err: err}
}

// Member decodes one member of a request into v. If the member is absent or null, v is unchanged. path
// names the member in errors, such as "messages.3.content".
//
// Errors: kind Invalid, with Param set to the path of the value that has the wrong type.
func Member(raw json.RawMessage, path string, v any) *turn.Error {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	err := json.Unmarshal(raw, v)
	if err == nil {
		return nil
	}
	message := fmt.Sprintf("%s: %s", path, err)
	if kind := (*json.UnmarshalTypeError)(nil); errors.As(err, &kind) {
		if kind.Field != "" {
			path += "." + kind.Field
		}
		message = fmt.Sprintf("%s must not be a %s", path, kind.Value)
	}
	return &turn.Error{Kind: turn.Invalid, Param: path, Code: "invalid_type", Message: message, Err: err}
}

// DataImage reads an image from a data URL. path names the parameter in errors.
//
// Errors: kind Invalid for a remote URL, for a URL that is no base64 data URL of an
// image, and for an image above maxImage.
func DataImage(url, path string) (*turn.Image, *turn.Error) {
	head, data, ok := strings.Cut(url, ",")
	if !ok || !strings.HasPrefix(head, "data:") {
		return nil, &turn.Error{Kind: turn.Invalid, Param: path, Code: "invalid_image_url", Message: path + " must be a data: URL; unwire does not fetch remote images, so send the image itself as data:image/png;base64,..."}
	}
	mime, isBase64 := strings.CutSuffix(strings.TrimPrefix(head, "data:"), ";base64")
	if !isBase64 {
		return nil, &turn.Error{Kind: turn.Invalid, Param: path, Code: "invalid_image_url", Message: path + " must be base64: data:image/png;base64,..."}
	}
	return Base64Image(mime, data, path)
}

// Base64Image decodes an image given as base64 text and media type. path names the parameter in errors.
//
// Errors: kind Invalid for another media type than image/*, for text that is not base64, and for an
// image above maxImage.
func Base64Image(mime, data, path string) (*turn.Image, *turn.Error) {
	if !strings.HasPrefix(mime, "image/") {
		return nil, &turn.Error{Kind: turn.Invalid, Param: path, Code: "invalid_image", Message: fmt.Sprintf("%s: %.40q is not an image type", path, mime)}
	}
	if base64.StdEncoding.DecodedLen(len(data)) > maxImage+2 {
		return nil, &turn.Error{Kind: turn.Invalid, Param: path, Code: "image_too_large", Message: fmt.Sprintf("%s: the image is larger than %d MB", path, maxImage>>20)}
	}
	b, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return nil, &turn.Error{Kind: turn.Invalid, Param: path, Code: "invalid_image", Message: path + ": the image is not valid base64", Err: err}
	}
	return &turn.Image{MIME: mime, Data: b}, nil
}

// Arguments converts the arguments of a tool call from text to a JSON object. Text that is not a JSON
// object, such as truncated JSON from an interrupted answer, becomes the member "input" of an object.
func Arguments(text string) json.RawMessage {
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &object) == nil && object != nil {
		return json.RawMessage(text)
	}
	if strings.TrimSpace(text) == "" {
		return json.RawMessage("{}")
	}
	wrapped, err := json.Marshal(map[string]string{"input": text})
	if err != nil { // a string always marshals
		return json.RawMessage("{}")
	}
	return wrapped
}
