#!/bin/sh
# Writes the generated code of the messages in open2.proto and open3.proto, in
# both APIs: with structs that can be read (open2, open3), and opaque (opaque2,
# opaque3), whose lazy fields are parsed when they are read. It needs protoc; the
# plugin is the one of the module's version.
set -eu
cd "$(dirname "$0")"
out=$(mktemp -d)
trap 'rm -r "$out"' EXIT
go build -o "$out/protoc-gen-go" google.golang.org/protobuf/cmd/protoc-gen-go
for syntax in 2 3; do
  sed "s/open\([23]\)/opaque\1/g" "open$syntax.proto" >"$out/opaque$syntax.proto"
  cp "open$syntax.proto" "$out"
done
for api in open opaque; do
  level=API_$(echo $api | tr a-z A-Z)
  protoc -I "$out" --plugin="$out/protoc-gen-go" --go_out=. --go_opt=module=unwire/replay/probe/testdata/gen \
    --go_opt=default_api_level="$level" "${api}2.proto" "${api}3.proto"
done

# The service of catalog.proto, as servers of connect-go, grpc-go, Twirp and grpc-gateway have it. The
# plugins that this module does not require are those of the versions below.
go build -o "$out/protoc-gen-connect-go" connectrpc.com/connect/cmd/protoc-gen-connect-go
GOBIN="$out" go install google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.1
GOBIN="$out" go install github.com/twitchtv/twirp/protoc-gen-twirp@v8.1.3+incompatible
GOBIN="$out" go install github.com/grpc-ecosystem/grpc-gateway/v2/protoc-gen-grpc-gateway@v2.27.3
PATH="$out:$PATH" protoc -I . --go_out=. --connect-go_out=. --go-grpc_out=. --twirp_out=. --grpc-gateway_out=. \
  --go_opt=module=unwire/replay/probe/testdata/gen --connect-go_opt=module=unwire/replay/probe/testdata/gen \
  --go-grpc_opt=module=unwire/replay/probe/testdata/gen --twirp_opt=module=unwire/replay/probe/testdata/gen \
  --grpc-gateway_opt=module=unwire/replay/probe/testdata/gen,generate_unbound_methods=true catalog.proto
