package javalite

import (
	"strings"

	"unwire/schema/bundle/model"
	"unwire/schema/bundle/protoname"
	"unwire/schema/classfile"
)

// A service is what the generated code of gRPC says about a service.
type service struct {
	methods []method
	place   string
	// pkg is the Java package of the code.
	pkg string
}

// A method is an RPC method.
type method struct {
	name string
	// in and out are the classes of the request and the response.
	in, out        string
	client, server bool
}

// addService collects the methods of a service from the annotations that the generator of gRPC for Java writes.
func (r *Reader) addService(place string, f *classfile.File) {
	for i := range f.Methods {
		for _, a := range f.Methods[i].Annotations {
			if !strings.HasSuffix(a.Type, "/RpcMethod;") {
				continue
			}
			full, name, ok := cutLast(a.Elements["fullMethodName"], "/")
			m := method{name: name, in: className(a.Elements["requestType"]), out: className(a.Elements["responseType"])}
			if !ok || !protoname.ValidFull(full) || !protoname.Valid(name) || m.in == "" || m.out == "" {
				continue
			}
			kind := a.Elements["methodType"]
			m.client = kind == "CLIENT_STREAMING" || kind == "BIDI_STREAMING"
			m.server = kind == "SERVER_STREAMING" || kind == "BIDI_STREAMING"
			if r.services == nil {
				r.services = map[string]*service{}
			}
			if r.services[full] == nil {
				pkg, _, _ := cutLast(f.Name, "/")
				r.services[full] = &service{place: place, pkg: pkg}
			}
			r.services[full].methods = append(r.services[full].methods, m)
			r.fields++
		}
	}
}

// packages returns the .proto package for each Java package that has services of one .proto package only. Their messages
// are probably of the same files.
func (r *Reader) packages() map[string]string {
	found := map[string]string{"com/google/protobuf": "google.protobuf"}
	several := map[string]bool{}
	for full, s := range r.services {
		pkg := protoname.Package(full)
		if have, ok := found[s.pkg]; ok && have != pkg {
			several[s.pkg] = true
		}
		found[s.pkg] = pkg
	}
	for pkg := range several {
		delete(found, pkg)
	}
	return found
}

// addServices adds the services of which a message was found. Those of the full runtime have descriptors.
func (r *Reader) addServices(d *model.Definitions, names *namer) {
	for _, full := range sortedKeys(r.services) {
		s := r.services[full]
		def := &model.Service{Def: model.Def{Full: full, Form: Form, Place: model.Place{File: s.place}, Whole: true}}
		lite := false
		for _, m := range s.methods {
			in, out := &model.Ref{Full: names.full(m.in)}, &model.Ref{Full: names.full(m.out)}
			lite = lite || r.messages[m.in] != nil || r.messages[m.out] != nil
			def.Methods = append(def.Methods, &model.Method{Name: m.name, In: in, Out: out, Client: m.client, Server: m.server})
		}
		if !lite {
			continue
		}
		d.Services = append(d.Services, def)
		for _, m := range def.Methods {
			d.Refs = append(d.Refs, m.In, m.Out)
		}
	}
}
