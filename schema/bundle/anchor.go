package bundle

import (
	"bytes"

	"github.com/tdewolff/parse/v2/js"
)

// An anchorKind is a word that survives minifiers and stands where a codegen's
// output may be.
type anchorKind int

const (
	anchorNone anchorKind = iota
	// proto3.util.newFieldList(() => […]), protobuf-es 1 as classes
	anchorFieldList
	anchorMessageType // proto3.makeMessageType("…", () => […])
	anchorEnumType    // proto3.makeEnum, proto3.util.setEnumType
	anchorExtension   // proto2.makeExtension
	anchorTypeName    // typeName: a service of connect-es 1
	anchorDescriptor  // a string that may be a descriptor in base64
	anchorSuper       // super("…", […]): a message of protobuf-ts
	// new ServiceType("…", […]), new MessageType("…", […])
	anchorNew
	anchorNested // nested: reflection JSON of protobufjs
	// .uint32(10): static code of protobufjs and ts-proto
	anchorUint32
	anchorWriter // serializeBinaryToWriter: google-protobuf
	// goog.exportSymbol("proto.pkg.Type", null, global)
	anchorExportSymbol
	// requestStream: methods of grpc-js and of ts-proto
	anchorRequestStream
	anchorGRPCWeb // MethodDescriptor("/pkg.Service/Method", …)
	// this.rpcCall(…), a service of static protobufjs
	anchorRPCCall
	anchorRPCRequest   // this.rpc.request(…), a client of ts-proto
	anchorAddJSON      // root.addJSON({…})
	anchorJSON         // a string that may be reflection JSON
	anchorEnums        // options.enums: toObject of static protobufjs
	anchorOneofGetter  // oneOfGetter(…)
	anchorTypeURL      // Foo.getTypeUrl
	anchorRPCService   // protobuf.rpc.Service
	anchorPackage      // protobufPackage = "pkg", of ts-proto
	anchorEncode       // {encode(…), decode(…), …}, of ts-proto
	anchorUnrecognized // a value of each enum of ts-proto
	anchorFrozen       // {__proto__: null, …}, a namespace of Rollup
	anchorKinds
)

// shortestDescriptor is the length of the shortest string that is looked at as
// a descriptor in base64, with its quotes.
const shortestDescriptor = 18

// packageWord is what ts-proto calls a package's name, and bundlers with a
// number after it.
const packageWord = "protobufPackage"

func anchorOf(typ js.TokenType, text []byte) anchorKind {
	switch typ {
	case js.SuperToken:
		return anchorSuper
	case js.NewToken:
		return anchorNew
	case js.StringToken, js.TemplateToken:
		// A FileDescriptorProto begins with its name: 0x0a and a length below 128.
		if len(text) >= shortestDescriptor && text[1] == 'C' && 'g' <= text[2] && text[2] <= 'n' {
			return anchorDescriptor
		}
		if len(text) > 2 {
			if len(text) > 32 && text[1] == '{' && bytes.Contains(text, []byte("nested")) {
				return anchorJSON
			}
			switch string(text[1 : len(text)-1]) {
			case "nested":
				return anchorNested
			case "typeName":
				return anchorTypeName
			case unrecognized:
				return anchorUnrecognized
			}
		}
		return anchorNone
	}
	if len(text) >= len(packageWord) && string(text[:len(packageWord)]) == packageWord {
		return anchorPackage
	}
	switch string(text) {
	case "newFieldList":
		return anchorFieldList
	case "makeMessageType":
		return anchorMessageType
	case "makeEnum", "setEnumType":
		return anchorEnumType
	case "makeExtension":
		return anchorExtension
	case "typeName":
		return anchorTypeName
	case "nested":
		return anchorNested
	case "addJSON":
		return anchorAddJSON
	case unrecognized:
		return anchorUnrecognized
	case "uint32":
		return anchorUint32
	case "serializeBinaryToWriter":
		return anchorWriter
	case "exportSymbol":
		return anchorExportSymbol
	case "requestStream":
		return anchorRequestStream
	case "MethodDescriptor":
		return anchorGRPCWeb
	case "getTypeUrl":
		return anchorTypeURL
	case "Service":
		return anchorRPCService
	case "encode":
		return anchorEncode
	case "__proto__":
		return anchorFrozen
	case "enums":
		return anchorEnums
	case "oneOfGetter":
		return anchorOneofGetter
	case "rpcCall":
		return anchorRPCCall
	case "request", "clientStreamingRequest", "serverStreamingRequest", "bidirectionalStreamingRequest":
		return anchorRPCRequest
	}
	return anchorNone
}
