package fs_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPythonModes: every way in which Python opens a file for reading and writing works for a control file, with
// the answers read back wherever the position is.
func TestPythonModes(t *testing.T) {
	w := newWriting(t)
	for _, mode := range []string{"a+", "r+", "w+"} {
		before := w.raw("s")
		ids := python(t, `
import io, sys
path, mode, line = sys.argv[1:]
with open(path, mode) as f:
    for n in range(3):
        f.write(line + "\n")
        f.flush()
        print(f.readline(), end="")
with open(path, mode + "b") as f:
    f.write(line.encode() + b"\n" + line.encode() + b"\n")
    f.seek(0, io.SEEK_CUR)
    print(f.read().decode(), end="")
    f.tell()
with open(path, mode + "b", buffering=0) as f:
    f.write(line.encode() + b"\n")
    f.seek(0)
    print(f.read().decode(), end="")
`, w.in("append"), mode, message(mode))
		want := ""
		for _, r := range w.added(before) {
			want += r.ID + "\n"
		}
		require.Len(t, w.added(before), 6, mode)
		require.Equal(t, want, ids, mode)
	}
	require.NoError(t, put(w.in("labels"), "e1 one\ne2 two\n"))
	python(t, `
import sys
labels, title = sys.argv[1:]
with open(labels, "r+") as f:
    lines = f.read()
    assert lines == "e1\tone\ne2\ttwo\n", lines
    f.seek(0)
    f.write(lines.replace("two", "2"))
    f.truncate()
for mode in ("r+", "a+", "w+"):
    with open(title, mode) as f:
        f.seek(0)
        was = f.read()
        f.seek(0)
        f.write(mode + "\n")
    assert open(title).read() == mode + "\n", mode
`, w.in("labels"), w.in("title"))
	require.Equal(t, "e1\tone\ne2\t2\n", w.read("labels"))
	w.wellRead()
}
