package fs_test

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCrawlers: every tool walks the directory of a big session to its end, with status 0 and without a
// word, and sees the content of each entry once (docs/design.md, Crawlers).
func TestCrawlers(t *testing.T) {
	t.Parallel()
	onceIsEnough(t)
	notUnderRace(t)
	m := mountForTest(t, big(t))
	for name, s := range bigSessions {
		t.Run(name, func(t *testing.T) {
			dir := m.session(name)
			for crawler, crawl := range crawlers {
				t.Run(crawler, func(t *testing.T) {
					var seen markCounter
					crawl(t, dir, &seen)
					seen.each(t, s.entries(), 1)
				})
			}
			t.Run("find", func(t *testing.T) { checkFind(t, dir, s.entries()) })
			t.Run("sizes", func(t *testing.T) { checkSizes(t, dir) })
		})
	}
}

var crawlers = map[string]func(t *testing.T, dir string, seen *markCounter){
	"grep -r": func(t *testing.T, dir string, seen *markCounter) {
		crawlTool(t, seen, "grep", "-rhoE", "MARK[0-9]{8}", dir)
	},
	"rg": func(t *testing.T, dir string, seen *markCounter) {
		crawlTool(t, seen, "rg", "--no-config", "-uuu", "-INo", "MARK[0-9]{8}", dir)
	},
	"tar": func(t *testing.T, dir string, seen *markCounter) {
		crawlTool(t, seen, "tar", "-C", filepath.Dir(dir), "-cf", "-", filepath.Base(dir))
	},
	"rsync -a": func(t *testing.T, dir string, seen *markCounter) { crawlCopy(t, dir, seen, "rsync", "-a") },
	"cp -a":    func(t *testing.T, dir string, seen *markCounter) { crawlCopy(t, dir, seen, "cp", "-a") },
	"os.walk": func(t *testing.T, dir string, seen *markCounter) {
		crawlTool(t, seen, "python3", "-c", `
import os, sys
def fail(e): raise e
for d, dirs, files in os.walk(sys.argv[1], onerror=fail):
    for f in files:
        p = os.path.join(d, f)
        if not os.path.islink(p):
            with open(p, "rb") as c: sys.stdout.buffer.write(c.read())
`, dir)
	},
}

// crawlTool runs a tool and counts marks in what it prints.
func crawlTool(t *testing.T, seen *markCounter, name string, args ...string) {
	if _, err := exec.LookPath(name); err != nil {
		missing(t, "%s is not installed", name)
	}
	var problems bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/", seen, &problems
	require.NoError(t, cmd.Run(), "%s: %.1000s", name, problems.String())
	require.Empty(t, problems.String())
}

// crawlCopy copies the directory with a tool; the copy is the same tree.
func crawlCopy(t *testing.T, dir string, seen *markCounter, name string, args ...string) {
	to := filepath.Join(scratch(t), "copy")
	if name == "rsync" {
		run(t, name, append(args, dir+"/", to)...)
	} else {
		run(t, name, append(args, dir, to)...)
	}
	paths := 0
	require.NoError(t, filepath.WalkDir(to, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		paths++
		if !d.Type().IsRegular() {
			return nil
		}
		content, err := os.ReadFile(path)
		_, _ = seen.Write(content)
		_, _ = seen.Write([]byte("\n"))
		return err
	}))
	want := strings.Count(run(t, "find", dir, "-printf", `\n`), "\n")
	require.Equal(t, want, paths, "paths in the copy")
}

// maxDepth is how deep a listed path may lie in a session's directory: 64 levels, and what is above
// them (docs/design.md, Crawlers: about 100).
const maxDepth = 70

// checkFind: no path is listed twice, none is too deep, and there is a file for each entry.
func checkFind(t *testing.T, dir string, entries int) {
	seen := map[string]bool{}
	inodes := map[string]string{}
	files, nodes := 0, 0
	for line := range strings.Lines(run(t, "find", dir, "-printf", `%d %y %i %P\n`)) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 4)
		depth, err := strconv.Atoi(f[0])
		require.NoError(t, err)
		require.LessOrEqual(t, depth, maxDepth, f[3])
		require.False(t, seen[f[3]], "listed twice: %s", f[3])
		seen[f[3]] = true
		require.Empty(t, inodes[f[2]], "the inode number of %s", f[3])
		inodes[f[2]] = f[3]
		switch {
		case strings.HasPrefix(f[3], "branches/"):
			require.Equal(t, f[1] == "d", f[3] == "branches/.by-id", "%s: a link, or the empty place where links lead", f[3])
		case strings.HasPrefix(f[3], "entries/"):
			require.Equal(t, "f", f[1], f[3])
			files++
		case strings.HasPrefix(f[3], "tree/") && strings.HasSuffix(f[3], "/entry.json"):
			require.Equal(t, "l", f[1], f[3])
			nodes++
		}
	}
	require.Equal(t, entries, files, "files in entries/")
	require.Equal(t, entries, nodes, "entry.json in tree/")
	require.Less(t, len(seen), 4*entries+50, "no listing grows faster than the session")
}

// checkSizes: stat tells the size that a read finds, and blocks that fit it; that of a link is its target's. Of entries a sample
// is read, since the copies read the rest. A directory has one name, which means unknown: else find stops early.
func checkSizes(t *testing.T, dir string) {
	python(t, `
import os, sys
files = []
for d, dirs, names in os.walk(sys.argv[1]):
    assert os.lstat(d).st_nlink == 1, d
    for f in [os.path.join(d, name) for name in names + dirs]:
        st = os.lstat(f)
        if os.path.islink(f): assert st.st_size == len(os.readlink(os.fsencode(f))), f
        elif os.path.isfile(f): files.append((f, st))
assert len(files) > 2
for i, (f, st) in enumerate(files):
    if i % (len(files) // 500 + 1) and "/entries/" in f: continue
    with open(f, "rb") as c: size = len(c.read())
    assert st.st_size == size, (f, st.st_size, size)
    assert size <= 512 * st.st_blocks <= size + (64 << 10), (f, "fewer blocks than bytes look like a hole", st.st_blocks)
`, dir)
}
