package classfile

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"unwire/captures/need"
)

// source is a class with what the package reads.
const source = `
package acme;
@interface Route { String path(); Class<?> type(); Mode mode(); int[] sizes() default {}; }
enum Mode { FAST, SLOW }
class Sample extends Thread {
  static final int ANSWER = 42;
  static final long WIDE = 1L << 40;
  static final String NAME = "na\u00efve";
  Sample next;
  @Route(path = "/a", type = Sample.class, mode = Mode.SLOW, sizes = {1, 2})
  Object[] pair(int n) {
    switch (n) { case 1: case 2: case 9: return null; case 1000: return new Object[1]; }
    return new Object[] {"one", Sample.class, Mode.FAST, NAME};
  }
}
`

// compiled returns the class files of source by their name.
func compiled(t testing.TB) map[string][]byte {
	t.Helper()
	javac := need.Program(t, "javac", "default-jdk-headless", "-version")
	dir := t.TempDir()
	file := filepath.Join(dir, "Sample.java")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	if msg, err := exec.CommandContext(t.Context(), javac, "-encoding", "UTF-8", "-d", dir, file).CombinedOutput(); err != nil {
		t.Fatalf("javac: %v\n%s", err, msg)
	}
	classes := map[string][]byte{}
	for _, name := range []string{"Sample", "Mode", "Route"} {
		data, err := os.ReadFile(filepath.Join(dir, "acme", name+".class"))
		if err != nil {
			t.Fatal(err)
		}
		classes[name] = data
	}
	return classes
}

// member returns the member with a name.
func member(t *testing.T, list []Member, name string) *Member {
	t.Helper()
	for i := range list {
		if list[i].Name == name {
			return &list[i]
		}
	}
	t.Fatalf("no %s in %+v", name, list)
	return nil
}

// TestParse reads a class that javac compiled.
func TestParse(t *testing.T) {
	t.Parallel()
	f := Parse(compiled(t)["Sample"])
	if f.Name != "acme/Sample" || f.Super != "java/lang/Thread" {
		t.Errorf("%s extends %s", f.Name, f.Super)
	}
	if n, ok := f.Int(member(t, f.Fields, "ANSWER").Constant); n != 42 || !ok {
		t.Errorf("%d, %v", n, ok)
	}
	if _, ok := f.Int(member(t, f.Fields, "WIDE").Constant); ok {
		t.Error("a long is no int")
	}
	if text, ok := f.Text(member(t, f.Fields, "NAME").Constant); string(text) != "naïve" || !ok {
		t.Errorf("%q, %v", text, ok)
	}
	if m := member(t, f.Fields, "next"); m.Descriptor != "Lacme/Sample;" || m.Constant != 0 {
		t.Errorf("%+v", m)
	}

	// The elements of the array are stored in order, behind both switches.
	m := member(t, f.Methods, "pair")
	var stored []string
	last := ""
	for in := range m.Instructions() {
		switch in.Op {
		case OpLdc, OpLdcW:
			last = f.Class(in.Index)
			if text, ok := f.Text(in.Index); ok {
				last = string(text)
			}
		case OpGetstatic:
			class, name, descriptor := f.Ref(in.Index)
			last = class + "." + name + " " + descriptor
		case OpAastore:
			stored = append(stored, last)
		}
	}
	want := []string{"one", "acme/Sample", "acme/Mode.FAST Lacme/Mode;", "naïve"}
	if len(stored) != len(want) {
		t.Fatalf("%q", stored)
	}
	for i := range want {
		if stored[i] != want[i] {
			t.Errorf("%q, want %q", stored[i], want[i])
		}
	}

	if len(m.Annotations) != 1 || m.Annotations[0].Type != "Lacme/Route;" {
		t.Fatalf("%+v", m.Annotations)
	}
	for name, value := range map[string]string{"path": "/a", "type": "Lacme/Sample;", "mode": "SLOW"} {
		if got := m.Annotations[0].Elements[name]; got != value {
			t.Errorf("%s is %q, want %q", name, got, value)
		}
	}
}

// TestDamaged cuts a class anywhere, and looks up constants that do not exist.
func TestDamaged(t *testing.T) {
	t.Parallel()
	data := compiled(t)["Sample"]
	for n := range data {
		if f := Parse(data[:n]); f != nil && n == len(data)-1 && f.Name != "acme/Sample" {
			t.Error(f.Name)
		}
	}
	f := Parse(data)
	for _, i := range []int{-1, 0, len(f.pool), 1 << 20} {
		if _, ok := f.Text(i); ok || f.Class(i) != "" {
			t.Errorf("constant %d exists", i)
		}
	}
	if Parse([]byte("no class")) != nil || Parse(nil) != nil {
		t.Error("parsed what is no class")
	}
}

// FuzzParse reads damaged classes to the end.
func FuzzParse(f *testing.F) {
	if _, err := need.CheckProgram("javac", "default-jdk-headless", "-version"); err == nil {
		for _, data := range compiled(f) {
			f.Add(data)
		}
	}
	f.Add([]byte(magic + "\x00\x00\x00\x34\x00\x02\x01\x00\x01a"))
	f.Fuzz(func(t *testing.T, data []byte) {
		class := Parse(data)
		if class == nil {
			return
		}
		for i := range class.Methods {
			for in := range class.Methods[i].Instructions() {
				class.Ref(in.Index)
				class.Text(in.Index)
			}
		}
	})
}
