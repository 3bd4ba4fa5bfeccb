package completion

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/proto"
	"unwire/schema"
)

// address offers completions for an address: file names of captures and, after #, the numbers of the
// capture's exchanges, as in F.uwc#7.
func address(ctx context.Context, _ *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	file, _, isExchange := strings.Cut(prefix, "#")
	if !isExchange {
		return []cobra.Completion{"uwc"}, cobra.ShellCompDirectiveFilterFileExt
	}
	list := exchangesOf(ctx, []string{file})
	for i := range list {
		list[i] = file + "#" + list[i]
	}
	return list, nothing
}

// exchangesOf returns, as completions, the numbers of the exchanges of the first capture in args, each
// described by its call.
func exchangesOf(ctx context.Context, args []string) []cobra.Completion {
	var list []cobra.Completion
	eachExchange(ctx, args, func(ex *captures.Exchange) {
		list = append(list, fmt.Sprintf("%d\t%s %d", ex.ID, callOf(ex), ex.Status))
	})
	return list
}

// eachExchange calls do for up to maxCandidates exchanges of the first capture in args. Errors are
// ignored.
func eachExchange(ctx context.Context, args []string, do func(*captures.Exchange)) {
	for _, arg := range args {
		file, _, _ := strings.Cut(arg, "#")
		s, err := store.Open(file, store.ReadOptions{})
		if err != nil {
			continue
		}
		defer s.Close() //nolint:errcheck // it was only read
		count := 0
		for l, err := range s.Listing(ctx, 0) {
			if err != nil || count == maxCandidates {
				break
			}
			do(l.Exchange)
			count++
		}
		return
	}
}

// callOf returns a short name for the call of an exchange: the host and the last two elements of the
// URL's path.
func callOf(ex *captures.Exchange) string {
	u, err := url.Parse(ex.URL)
	if err != nil {
		return ex.Method
	}
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	return u.Host + "/" + strings.Join(parts[max(0, len(parts)-2):], "/")
}

// methods offers the RPC methods that were called in the captures in args or, if there are none, those in
// the definitions.
func methods(ctx context.Context, cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	slash := ""
	if strings.HasPrefix(prefix, "/") || cmd.Name() == "probe" {
		slash = "/"
	}
	if like := cmd.Flags().Lookup("like"); like != nil && like.Changed {
		args = append(args, like.Value.String())
	}

	// Methods of a capture come first, because these are the ones that were called.
	var list []cobra.Completion
	eachExchange(ctx, args, func(ex *captures.Exchange) {
		u, err := url.Parse(ex.URL)
		if err != nil {
			return
		}
		if service, rpc, ok := strings.Cut(strings.TrimPrefix(u.Path, "/"), "/"); ok && strings.Contains(service, ".") && !strings.Contains(rpc, "/") {
			list = append(list, slash+service+"/"+rpc)
		}
	})
	slices.Sort(list)
	if list = slices.Compact(list); len(list) > 0 {
		return list, nothing
	}

	// Without a capture, offer all methods of the definitions.
	eachFile(ctx, cmd, func(file protoreflect.FileDescriptor) {
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			for j := range service.Methods().Len() {
				list = append(list, slash+string(service.FullName())+"/"+string(service.Methods().Get(j).Name()))
			}
		}
	})
	return list, nothing
}

// types offers the full names of all messages in the definitions.
func types(ctx context.Context, cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var list []cobra.Completion
	eachFile(ctx, cmd, func(file protoreflect.FileDescriptor) { list = appendMessages(list, file.Messages()) })
	return list, nothing
}

// appendMessages appends the full names of messages, and of the messages nested in them, to list.
func appendMessages(list []cobra.Completion, messages protoreflect.MessageDescriptors) []cobra.Completion {
	for i := range messages.Len() {
		if m := messages.Get(i); !m.IsMapEntry() {
			list = appendMessages(append(list, string(m.FullName())), m.Messages())
		}
	}
	return list
}

// eachFile calls do for each .proto file of the definitions that --proto names or, without the flag, of
// the built-in ones.
func eachFile(ctx context.Context, cmd *cobra.Command, do func(protoreflect.FileDescriptor)) {
	var s *schema.Schema
	var err error
	if f := cmd.Flags().Lookup("proto"); f != nil && f.Changed {
		s, err = schema.LoadDefinitions(ctx, f.Value.String())
	} else {
		s, err = schema.Load(ctx, proto.Files)
	}
	if err != nil || s == nil {
		return
	}
	for _, file := range s.Files {
		do(file)
	}
}
