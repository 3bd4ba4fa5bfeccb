package messages

import (
	"fmt"
	"reflect"
	"testing"
	"time"
)

// strict reports what the official SDK's types do not know of an answer, and what they
// require and do not find. v is a value that the SDK has decoded.
func strict(t *testing.T, path string, v any) {
	t.Helper()
	checkStrict(t, path, reflect.ValueOf(v))
}

func checkStrict(t *testing.T, path string, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			checkStrict(t, path, v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			checkStrict(t, fmt.Sprintf("%s.%d", path, i), v.Index(i))
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		// A union has the fields of all its variants.
		if variant := v.MethodByName("AsAny"); variant.IsValid() {
			one := variant.Call(nil)[0]
			if one.IsNil() {
				t.Errorf("%s: the SDK knows no variant: %s", path, raw(v))
				return
			}
			checkStrict(t, path, one)
			return
		}
		checkFields(t, path, v)
	}
}

// raw returns the JSON that a value of the SDK was decoded from.
func raw(v reflect.Value) string {
	if method := v.MethodByName("RawJSON"); method.IsValid() {
		return method.Call(nil)[0].String()
	}
	return ""
}

// checkFields checks a struct of the SDK: its field JSON says what was in the answer.
func checkFields(t *testing.T, path string, v reflect.Value) {
	t.Helper()
	meta := v.FieldByName("JSON")
	if !meta.IsValid() {
		return
	}
	if extra := meta.FieldByName("ExtraFields"); extra.IsValid() {
		for _, name := range extra.MapKeys() {
			t.Errorf("%s.%s: the SDK does not know this field", path, name)
		}
	}
	for i := range v.NumField() {
		field := v.Type().Field(i)
		found := meta.FieldByName(field.Name)
		if !found.IsValid() {
			continue
		}
		raw := found.MethodByName("Raw").Call(nil)[0].String()
		_, constant := field.Tag.Lookup("default")
		if raw == "" && (field.Tag.Get("api") == "required" || constant) {
			t.Errorf("%s.%s: the SDK requires this field", path, field.Tag.Get("json"))
		}
		if raw != "" && raw != "null" {
			checkStrict(t, path+"."+field.Tag.Get("json"), v.Field(i))
		}
	}
}
