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
