package jstree

import (
	"bytes"

	"github.com/tdewolff/parse/v2/js"
)

// An AnchorKind is a kind of token that survives minification and shows that the output of a code generator may
// be near. Parsing starts at anchors only, which makes large scripts affordable.
type AnchorKind int

// The kinds of anchors: words in a script near which generated code is found.
const (
	// anchorNone is a token that is no anchor.
	anchorNone AnchorKind = iota
	// AnchorFieldList is newFieldList, as in proto3.util.newFieldList(() => […]) in classes of protobuf-es 1.
	AnchorFieldList
	// AnchorMessageType is makeMessageType, as in proto3.makeMessageType("…", () => […]) of protobuf-es 1.
	AnchorMessageType
	// AnchorEnumType is makeEnum or setEnumType, as in proto3.makeEnum(…) of protobuf-es 1.
	AnchorEnumType
	// AnchorExtension is makeExtension, as in proto2.makeExtension(…) of protobuf-es 1.
	AnchorExtension
	// AnchorTypeName is typeName, as in a service definition of connect-es 1.
	AnchorTypeName
	// AnchorDescriptor is a string literal that may be a file descriptor in base64.
	AnchorDescriptor
	// AnchorSuper is the keyword super, as in super("…", […]) in a message class of protobuf-ts.
	AnchorSuper
	// AnchorNew is the keyword new, as in new ServiceType("…", […]) and new MessageType("…", […]).
	AnchorNew
	// AnchorNested is the word nested, as in the reflection JSON of protobufjs.
	AnchorNested
	// AnchorUint32 is .uint32(10), in static code of protobufjs and in ts-proto.
	AnchorUint32
	// AnchorWriter is serializeBinaryToWriter, as in code for google-protobuf (JSPB).
	AnchorWriter
	// AnchorExportSymbol is goog.exportSymbol("proto.pkg.Type", null, global).
	AnchorExportSymbol
	// AnchorRequestStream is requestStream, in method definitions of grpc-js and ts-proto.
	AnchorRequestStream
	// AnchorGRPCWeb is MethodDescriptor, as in new grpc.web.MethodDescriptor("/pkg.Service/Method", …).
	AnchorGRPCWeb
	// AnchorRPCCall is this.rpcCall(…), in a service of static protobufjs code.
	AnchorRPCCall
	// AnchorRPCRequest is request, as in this.rpc.request(…) in a client of ts-proto.
	AnchorRPCRequest
	// AnchorAddJSON is addJSON, as in root.addJSON({…}) with reflection JSON of protobufjs.
	AnchorAddJSON
	// AnchorJSON is a string literal that may be reflection JSON of protobufjs.
	AnchorJSON
	// AnchorEnums is enums, as in options.enums in the function toObject of static protobufjs code.
	AnchorEnums
	// AnchorOneofGetter is oneOfGetter, as in static code of protobufjs for oneofs.
	AnchorOneofGetter
	// AnchorTypeURL is getTypeUrl, a function of each message in static code of protobufjs.
	AnchorTypeURL
	// AnchorRPCService is Service, as in protobuf.rpc.Service in static code of protobufjs.
	AnchorRPCService
	// AnchorPackage is protobufPackage, the constant in which ts-proto stores the protobuf package.
	AnchorPackage
	// AnchorEncode is encode, as in the objects {encode(…), decode(…), …} of ts-proto.
	AnchorEncode
	// AnchorUnrecognized is UNRECOGNIZED, a value that ts-proto adds to each enum.
	AnchorUnrecognized
	// AnchorFrozen is __proto__, as in {__proto__: null, …}, a namespace that Rollup generates.
	AnchorFrozen
	// AnchorReadFields is readFields or nextField, as in pbf.readFields(…).
	AnchorReadFields
	// AnchorPBFWrite is a writing method of the library pbf, such as writeStringField.
	AnchorPBFWrite
	// AnchorEncodingLength is a member of the messages of protocol-buffers.
	AnchorEncodingLength
	// AnchorLengthDelimited is an option of the functions of protons that encode messages.
	AnchorLengthDelimited
	// AnchorResultBuffer is writer.getResultBuffer(), of google-protobuf.
	AnchorResultBuffer
	// AnchorMessages is messages, in the JSON of protobufjs up to version 5.
	AnchorMessages
	// anchorKinds is the number of kinds of anchors.
	anchorKinds
)

// shortestDescriptor is the minimum length in bytes, with quotes, of a string literal that is examined as a
// descriptor in base64.
const shortestDescriptor = 18

// Unrecognized is the name of the value -1 that ts-proto adds to each enum.
const Unrecognized = "UNRECOGNIZED"

// PackageWord is the name of the constant in which ts-proto stores the protobuf package. Bundlers append a
// number to the name.
const PackageWord = "protobufPackage"

// anchorWords maps identifiers to the kinds of anchors that they are.
var anchorWords = map[string]AnchorKind{
	"newFieldList":                  AnchorFieldList,
	"makeMessageType":               AnchorMessageType,
	"makeEnum":                      AnchorEnumType,
	"setEnumType":                   AnchorEnumType,
	"makeExtension":                 AnchorExtension,
	"typeName":                      AnchorTypeName,
	"nested":                        AnchorNested,
	"addJSON":                       AnchorAddJSON,
	Unrecognized:                    AnchorUnrecognized,
	"uint32":                        AnchorUint32,
	"serializeBinaryToWriter":       AnchorWriter,
	"exportSymbol":                  AnchorExportSymbol,
	"requestStream":                 AnchorRequestStream,
	"MethodDescriptor":              AnchorGRPCWeb,
	"getTypeUrl":                    AnchorTypeURL,
	"Service":                       AnchorRPCService,
	"encode":                        AnchorEncode,
	"__proto__":                     AnchorFrozen,
	"enums":                         AnchorEnums,
	"oneOfGetter":                   AnchorOneofGetter,
	"rpcCall":                       AnchorRPCCall,
	"request":                       AnchorRPCRequest,
	"clientStreamingRequest":        AnchorRPCRequest,
	"serverStreamingRequest":        AnchorRPCRequest,
	"bidirectionalStreamingRequest": AnchorRPCRequest,
	"readFields":                    AnchorReadFields,
	"nextField":                     AnchorReadFields,
	"writeMessage":                  AnchorPBFWrite,
	"encodingLength":                AnchorEncodingLength,
	"lengthDelimited":               AnchorLengthDelimited,
	"getResultBuffer":               AnchorResultBuffer,
	"messages":                      AnchorMessages,
	"writeVarintField":              AnchorPBFWrite,
	"writeSVarintField":             AnchorPBFWrite,
	"writeBooleanField":             AnchorPBFWrite,
	"writeStringField":              AnchorPBFWrite,
	"writeBytesField":               AnchorPBFWrite,
	"writeFloatField":               AnchorPBFWrite,
	"writeDoubleField":              AnchorPBFWrite,
	"writeFixed32Field":             AnchorPBFWrite,
	"writeSFixed32Field":            AnchorPBFWrite,
	"writeFixed64Field":             AnchorPBFWrite,
	"writeSFixed64Field":            AnchorPBFWrite,
	"writePackedVarint":             AnchorPBFWrite,
	"writePackedSVarint":            AnchorPBFWrite,
	"writePackedBoolean":            AnchorPBFWrite,
}

// anchorOf returns the kind of anchor that a token with type typ and source text is, or anchorNone.
func anchorOf(typ js.TokenType, text []byte) AnchorKind {
	switch typ {
	case js.SuperToken:
		return AnchorSuper
	case js.NewToken:
		return AnchorNew
	case js.StringToken, js.TemplateToken:
		// A FileDescriptorProto begins with its name: 0x0a and a length below 128.
		if len(text) >= shortestDescriptor && text[1] == 'C' && 'g' <= text[2] && text[2] <= 'n' {
			return AnchorDescriptor
		}
		if len(text) > 2 {
			// The JSON definitions of protobuf.js can be one long string.
			if len(text) > 32 && text[1] == '{' && bytes.Contains(text, []byte("nested")) {
				return AnchorJSON
			}
			switch string(text[1 : len(text)-1]) {
			case "nested":
				return AnchorNested
			case "typeName":
				return AnchorTypeName
			case Unrecognized:
				return AnchorUnrecognized
			case "messages":
				return AnchorMessages
			}
		}
		return anchorNone
	}

	// All other anchors are identifiers.
	if len(text) >= len(PackageWord) && string(text[:len(PackageWord)]) == PackageWord {
		return AnchorPackage
	}
	return anchorWords[string(text)]
}
