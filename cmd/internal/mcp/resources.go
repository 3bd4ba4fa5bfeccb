package mcp

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/mcp/answer"
	"unwire/cmd/internal/query"
)

const (
	// scheme begins the URIs of resources: uwc://F.uwc#7/up/0.
	scheme = "uwc://"

	// resourcesPage is how many resources a page of their list has.
	resourcesPage = 100

	// maxResources bounds the resources that are listed; the rest can be read all the same.
	maxResources = 2000

	jsonType = "application/json"
)

// addResources offers captures, exchanges and frames as MCP resources. Their list is computed on each
// request, since captures grow.
func (s *Server) addResources() {
	for _, t := range []struct{ template, name, about string }{
		{"uwc://{+capture}", "capture", "The exchanges of a capture, as the tool list returns them; with #7 an exchange and with #7/up/0 a frame of it, as the tool show returns them"},
		{"uwc://{+capture}#{exchange}/{direction}/{frame}", "frame", "One decoded frame: uwc://F.uwc#7/up/0 is the first frame from the client to the server in exchange 7"},
	} {
		s.server.AddResourceTemplate(&sdk.ResourceTemplate{URITemplate: t.template, Name: t.name, Description: t.about, MIMEType: jsonType}, s.readResource)
	}
	s.server.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
			if list, ok := r.(*sdk.ListResourcesRequest); ok {
				return s.listResources(ctx, list)
			}
			return next(ctx, method, r)
		}
	})
}

// listResources returns one page of the list of captures and exchanges as MCP resources.
func (s *Server) listResources(ctx context.Context, r *sdk.ListResourcesRequest) (*sdk.ListResourcesResult, error) {
	first := 0
	if r.Params != nil && r.Params.Cursor != "" {
		var err error
		if first, err = strconv.Atoi(r.Params.Cursor); err != nil || first < 0 {
			return nil, fmt.Errorf("the cursor %q was not returned by an earlier list", r.Params.Cursor)
		}
	}
	all := s.resources(ctx)
	result := &sdk.ListResourcesResult{Resources: []*sdk.Resource{}}
	last := min(first+resourcesPage, len(all))
	if first < last {
		result.Resources = all[first:last]
	}
	if last < len(all) {
		result.NextCursor = strconv.Itoa(last)
	}
	return result, nil
}

// resources returns the captures and their exchanges as MCP resources, at most maxResources. A capture
// that cannot be read is listed without exchanges; the tool list reports the reason.
func (s *Server) resources(ctx context.Context) (all []*sdk.Resource) {
	for _, file := range s.shelf.files() {
		if len(all) >= maxResources {
			break
		}
		all = append(all, &sdk.Resource{URI: resourceURI(file), Name: file, Description: "a capture", MIMEType: jsonType})
		capture, _, err := s.opener.OpenRedacted(ctx, file)
		if err != nil {
			continue
		}
		list, err := capture.List(ctx)
		for i := 0; err == nil && i < len(list.Exchanges) && len(all) < maxResources; i++ {
			ex := &list.Exchanges[i]
			at := query.Address{File: file, Exchange: ex.ID, Frame: -1}
			name := ex.RPC
			if name == "" {
				name = ex.Exchange.Method + " " + string(ex.Protocol)
			}
			all = append(all, &sdk.Resource{
				URI: resourceURI(at.String()), Name: string(answer.Inert([]byte(name))), MIMEType: jsonType,
				Description: fmt.Sprintf("exchange %d: %s from the client, %d from the server", ex.ID, app.Counted(ex.FramesUp, "frame"), ex.FramesDown),
			})
		}
		// It was only read.
		_ = capture.Close()
	}
	return all
}

// resourceURI returns the URI of the capture, exchange or frame at an address.
func resourceURI(address string) string {
	at := query.ParseAddress(address)
	file := (&url.URL{Path: at.File}).EscapedPath()
	return scheme + strings.ReplaceAll(file, ":", "%3A") + strings.TrimPrefix(address, at.File)
}

// parseResource returns the address in a resource's URI, the inverse of resourceURI.
func parseResource(uri string) (string, error) {
	rest, ok := strings.CutPrefix(uri, scheme)
	if !ok || rest == "" {
		return "", fmt.Errorf("%q is not a URI such as uwc://F.uwc#7/up/0", uri)
	}
	// In URIs of some clients, # is escaped as well.
	address, err := url.PathUnescape(rest)
	if err != nil {
		return "", fmt.Errorf("%q is not a URI such as uwc://F.uwc#7/up/0", uri)
	}
	return address, nil
}

// readResource returns the content of a resource: for a capture the same as the tool list, and for an
// exchange or frame the same as the tool show.
func (s *Server) readResource(ctx context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	text, err := s.resource(ctx, r.Params.URI)
	if err != nil {
		return nil, err
	}
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: r.Params.URI, MIMEType: jsonType, Text: string(text)}}}, nil
}

// resource returns the content of the resource with a URI, as JSON.
func (s *Server) resource(ctx context.Context, uri string) ([]byte, error) {
	address, err := parseResource(uri)
	if err != nil {
		return nil, err
	}
	at, err := s.shelf.address(address)
	if err != nil {
		return nil, sdk.ResourceNotFoundError(uri)
	}
	a, err := s.run(ctx, answer.Request{MaxBytes: answer.MostBytes}, answer.Digest("resource", []byte(uri)), func(c *call) error {
		if at.Exchange == 0 {
			return list(c, listArguments{Captures: []string{at.String()}})
		}
		return show(c, showArguments{Address: at.String()})
	})
	if err != nil {
		text, hint := s.explain(ctx, err)
		return nil, fmt.Errorf("%s; %s", text, hint)
	}
	if a.Cursor != "" {
		a.Cursor = ""
		a.LeftOut[len(a.LeftOut)-1].What += "; the tools list and show have pages"
	}
	return encode(a)
}
