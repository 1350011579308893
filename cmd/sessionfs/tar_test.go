//go:build linux

package main

import (
	"archive/tar"
	"crypto/sha256"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// archived is what an archive says of a file.
type archived struct {
	kind             byte
	mode, size       int64
	modified         time.Time
	uid, gid         int
	user, group      string
	target, checksum string
}

// readArchive returns what is in an archive, and the names in order.
func readArchive(t *testing.T, text string) (map[string]archived, []string) {
	t.Helper()
	files := map[string]archived{}
	var names []string
	for r := tar.NewReader(strings.NewReader(text)); ; {
		h, err := r.Next()
		if err == io.EOF {
			return files, names
		}
		require.NoError(t, err)
		sum := sha256.New()
		_, err = io.Copy(sum, r)
		require.NoError(t, err)
		require.NotContains(t, files, h.Name)
		files[h.Name] = archived{h.Typeflag, h.Mode, h.Size, h.ModTime, h.Uid, h.Gid, h.Uname, h.Gname, h.Linkname, string(sum.Sum(nil))}
		names = append(names, h.Name)
	}
}

// What the commands show without a mount is what tar, cat and ls find in a mount of the same store, whole and byte by
// byte, also as a user who has no /dev/fuse.
func TestSameAsTheMount(t *testing.T) {
	for _, options := range []string{"rw", "redact"} {
		t.Run(options, func(t *testing.T) {
			s := commandStore(t)
			if os.Geteuid() == 0 {
				s.user = user{"user", nobody}
			}
			requireFuse(t, s.user)
			s.chown()
			require.Zero(t, s.run("-o", options, s.source, s.mountpoint).code)
			_, mounted := mountAt(s.mountpoint)
			require.True(t, mounted)

			packed := s.exec("tar", "--format=posix", "-C", s.mountpoint, "-c", ".")
			direct := s.withoutFuse("tar", "-s", s.source, "-o", options)
			// Artifacts, which nobody masks, cannot be opened with redact.
			require.Equal(t, strings.Count(packed.stderr, "Permission denied"), strings.Count(direct.stderr, "permission denied"))
			require.Equal(t, packed.code == 0, direct.code == 0, direct.stderr)
			require.Equal(t, options == "rw", direct.code == 0)
			want, _ := readArchive(t, packed.stdout)
			got, _ := readArchive(t, direct.stdout)
			require.Greater(t, len(got), 500)
			require.Equal(t, want, got)

			// The same by name, of what tar does not reach: through links, and what is not listed.
			unlisted := []string{
				"by-id/019d3d9/transcript.md", "by-id/019d3d9/branches/current/context.json", "by-id/019d3d9/branches/ba100fbb/entries.jsonl",
				"by-id/019d3d9/tree/ba100fbb/entry.json", "by-cwd/home/dev/tidetable/latest/header.json",
			}
			if options == "rw" {
				unlisted = append(unlisted, "by-id/019d3d9/secrets.jsonl", "history/search/tide* NOT moon")
			}
			for _, name := range unlisted {
				text, err := s.command("cat", filepath.Join(s.mountpoint, name)).Output()
				require.NoError(t, err, name)
				require.Equal(t, result{0, string(text), ""}, s.here("cat", "-o", options, name), name)
			}
			for _, dir := range []string{"", "recent", "by-id/019d3d9/branches/current/path", "by-id/019d3d9/entries", "sessions"} {
				r := s.exec("env", "LC_ALL=C", "ls", filepath.Join(s.mountpoint, dir))
				require.Equal(t, r, s.here("ls", "-o", options, dir+"/"), dir)
			}
			require.Zero(t, s.run("-u", s.mountpoint).code)
		})
	}
}

// withoutFuse runs the program as the store's user, without a /dev/fuse that could be opened where that can be done.
func (s *store) withoutFuse(args ...string) result {
	s.t.Helper()
	if os.Geteuid() != 0 || !mayMount() {
		return s.run(args...)
	}
	return s.inNamespace(`mount -t tmpfs none /dev; mknod -m 666 /dev/null c 1 3; run "$@"`, args...)
}

// An archive can be extracted by tar, and a path that is a link to a directory is the directory.
func TestTarOfASession(t *testing.T) {
	s := commandStore(t)
	r := s.here("tar", "by-id/019d3d9")
	require.Zero(t, r.code, r.stderr)
	require.Equal(t, r, s.here("tar", "by-id/019d3d9"), "the order is the same each time")
	_, names := readArchive(t, r.stdout)
	require.Equal(t, []string{"by-id/019d3d9/", "by-id/019d3d9/append", "by-id/019d3d9/artifacts/"}, names[:3])
	into := s.mkdir("into")
	cmd := exec.Command("tar", "-x", "-C", into)
	cmd.Stdin = strings.NewReader(r.stdout)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	title, err := os.ReadFile(filepath.Join(into, "by-id/019d3d9/title"))
	require.NoError(t, err)
	require.Equal(t, "An hour late, a hand too high\n", string(title))
	leaf, err := os.Readlink(filepath.Join(into, "by-id/019d3d9/leaf"))
	require.NoError(t, err)
	require.Equal(t, "entries/3a17833e.json", leaf)

	r = s.here("tar", "nothing", "by-id/019d3d9/title")
	requireStatus(t, exitFailure, r, "nothing: no such file")
	files, _ := readArchive(t, r.stdout)
	require.Len(t, files, 1)
}

func TestTree(t *testing.T) {
	s := commandStore(t)
	r := s.here("tree", "-L", "1", "by-id/019d3d9")
	require.Zero(t, r.code)
	require.True(t, strings.HasPrefix(r.stdout, "by-id/019d3d9\n├── append\n├── artifacts\n"), r.stdout)
	require.True(t, strings.HasSuffix(r.stdout, "├── leaf -> entries/3a17833e.json\n├── problems.jsonl\n├── search\n├── title\n├── transcript.md\n├── tree\n└── usage.json\n"), r.stdout)
	r = s.here("tree", "-n", "3")
	require.Zero(t, r.code)
	require.Equal(t, 4, strings.Count(r.stdout, "\n"))
	require.Contains(t, r.stderr, "only the first 3 names")
	require.Contains(t, s.here("tree", "history").stdout, "history\n├── prompts.jsonl\n└── search\n")
	requireStatus(t, exitUsage, s.here("tree", "-n", "0"))
}
