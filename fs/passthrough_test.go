package fs_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// linuxIs reports whether the kernel is of that version or a later one.
func linuxIs(t *testing.T, major, minor int) bool {
	var name unix.Utsname
	require.NoError(t, unix.Uname(&name))
	var is, and int
	_, err := fmt.Sscanf(unix.ByteSliceToString(name.Release[:]), "%d.%d", &is, &and)
	require.NoError(t, err)
	return is > major || is == major && and >= minor
}

// passthroughWorks reports whether the kernel reads files of SOURCE without the daemon here: that takes
// Linux 6.9, root of the machine, and a file system that lies on no other.
func passthroughWorks(t *testing.T, dir string) bool {
	uids := read(t, "/proc/self/uid_map")
	var st unix.Statfs_t
	require.NoError(t, unix.Statfs(dir, &st))
	return os.Geteuid() == 0 && linuxIs(t, 6, 9) &&
		strings.Join(strings.Fields(string(uids)), " ") == "0 0 4294967295" &&
		st.Type != unix.OVERLAYFS_SUPER_MAGIC
}

// TestLargeFiles: blobs and raw files come byte for byte, in any order and through mmap, and where the kernel can
// it reads them without the daemon.
func TestLargeFiles(t *testing.T) {
	a := newAgent(t)
	a.write("big", header("big"), entry(0, "e0", "", strings.Repeat("x", 3_000_000)))
	blob := bytes.Repeat([]byte("0123456789abcde\n"), 600_000/16*10+7)
	sum := sha256.Sum256(blob)
	name := hex.EncodeToString(sum[:])
	require.NoError(t, os.MkdirAll(filepath.Join(a.dir, "blobs"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(a.dir, "blobs", name), blob, 0o644))
	m := mountForTest(t, a.dir)
	before := m.procNumber("io", "rchar")
	for at, source := range map[string]string{
		"blobs/" + name:        filepath.Join(a.dir, "blobs", name),
		"sessions/p/big.jsonl": a.path("big.jsonl"),
	} {
		require.Equal(t, "same\n", run(t, "python3", "-c", program("mapped.py"), m.path(at), source))
	}
	if passthroughWorks(t, a.dir) {
		require.Less(t, m.procNumber("io", "rchar")-before, 1_000_000, "bytes that the daemon read")
	}
}

// TestReplacedWhileOpen: who has a file open goes on reading it, and who opens its name meanwhile reads what
// was put in its place, however often that happens.
func TestReplacedWhileOpen(t *testing.T) {
	a := newAgent(t)
	a.write("s", header("s"), entry(0, "e0", "", "0"))
	require.NoError(t, os.MkdirAll(filepath.Join(a.dir, "blobs"), 0o755))
	blob := filepath.Join(a.dir, "blobs", strings.Repeat("ab", 32))
	require.NoError(t, os.WriteFile(blob, []byte("blob"), 0o644))
	m := mountForTest(t, a.dir)
	run(t, "python3", "-c", program("replaced.py"), m.path("sessions/p/s.jsonl"), a.path("s.jsonl"), m.path("blobs/"+filepath.Base(blob)), blob)
}

// TestGeneratedFilesAreMapped: programs that map what they read get what others read.
func TestGeneratedFilesAreMapped(t *testing.T) {
	if !linuxIs(t, 6, 6) {
		t.Skip("before Linux 6.6 a file that is read directly cannot be mapped for several processes")
	}
	w := newWriting(t)
	for _, file := range []string{w.in("context.json"), w.in("transcript.md"), w.in("usage.json"), w.in("branches.tsv"), w.m.path("index.jsonl")} {
		run(t, "python3", "-c", `
import mmap, sys
with open(sys.argv[1], "rb") as f:
    want = f.read()
    for flags in mmap.MAP_SHARED, mmap.MAP_PRIVATE:
        assert mmap.mmap(f.fileno(), 0, flags=flags, prot=mmap.PROT_READ)[:] == want
`, file)
	}
}
