//go:build linux

package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	iofs "io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/storage/postgres/postgrestest"
)

// conformance is the folder of the conformance cases: all of them where they are at hand, beside the project or where
// SESSIONFS_CONFORMANCE says.
func conformance(t *testing.T) string {
	t.Helper()
	whole := os.Getenv("SESSIONFS_CONFORMANCE")
	if whole == "" {
		whole = "../../../shared/conformance"
	}
	if _, err := os.Stat(whole); err != nil {
		if os.Getenv(requireEnv) != "" {
			t.Fatalf("%s is set, so all conformance cases must be there: %v. SESSIONFS_CONFORMANCE names their folder", requireEnv, err)
		}
		whole = filepath.Join(projectRoot, "testdata/conformance")
	}
	whole, err := filepath.Abs(whole)
	require.NoError(t, err)
	return whole
}

// filesBelow returns what is in the files below a directory, without those that programs hide.
func filesBelow(t *testing.T, top string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(top, func(file string, item iofs.DirEntry, err error) error {
		if err != nil || item.IsDir() || item.Name()[0] == '.' {
			return err
		}
		text, err := os.ReadFile(file)
		name, _ := filepath.Rel(top, file)
		files[name] = string(text)
		return err
	})
	require.NoError(t, err)
	return files
}

// wantedOf returns what an import of a folder of cases is to make of its agent directories, after what it said: all their
// sessions and what lies beside those, but what was refused, without what was torn, and the blobs.
func wantedOf(t *testing.T, folder, said string) map[string]string {
	t.Helper()
	want := map[string]string{}
	require.NoError(t, filepath.WalkDir(folder, func(file string, item iofs.DirEntry, err error) error {
		_, place, inSessions := strings.Cut(file, "/agent/sessions/")
		if err != nil || item.IsDir() || !inSessions || item.Name()[0] == '.' || strings.Contains(said, "refused: "+file+": ") {
			return err
		}
		isSession := strings.HasSuffix(file, ".jsonl")
		beside := strings.Count(place, "/") > 1
		if !isSession && !beside {
			return nil // notes, backups
		}
		text := readFile(t, file)
		for _, line := range strings.Split(said, "\n") {
			_, after, torn := strings.Cut(line, "its last line is torn: ")
			if torn && strings.Contains(line, " sessions/"+place+" ") {
				n := 0
				_, err := fmt.Sscan(after, &n)
				require.NoError(t, err)
				require.NotContains(t, string(text[len(text)-n:]), "\n")
				text = text[:len(text)-n]
			}
		}
		require.NotContains(t, want, "sessions/"+place)
		want["sessions/"+place] = string(text)
		return nil
	}))
	return want
}

func sha256Of(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }

// lessBlobs checks that blobs are what their names say, and returns the other files.
func lessBlobs(t *testing.T, files map[string]string) map[string]string {
	t.Helper()
	blobs := 0
	for name, text := range files {
		if hash, ok := strings.CutPrefix(name, "blobs/"); ok {
			require.Equal(t, hash, sha256Of(text))
			delete(files, name)
			blobs++
		}
	}
	require.NotZero(t, blobs)
	return files
}

// TestImportConformance: all cases are imported into an empty directory, byte for byte but for what is said, and a bundle of
// that brings all of it elsewhere.
func TestImportConformance(t *testing.T) {
	folder := conformance(t)
	s := newStore(t, user{"self", os.Geteuid()})
	s.source = s.mkdir("empty/agent")
	r := s.here("import", folder)
	require.Equal(t, exitFailure, r.code, r.stderr)
	require.Regexp(t, `\n\d+ new, 0 longer, 0 same, [1-9]\d* refused; \d+ other files are left out\n$`, r.stdout)
	want := wantedOf(t, folder, r.stdout)
	require.Equal(t, want, lessBlobs(t, filesBelow(t, s.source)))

	before := s.exec("find", s.source, "-printf", "%p %T@ %C@ %i %s\n").stdout
	again := s.here("import", folder)
	require.Equal(t, exitFailure, again.code)
	require.Regexp(t, `\n0 new, 0 longer, \d+ same, [1-9]\d* refused; `, again.stdout)
	require.Equal(t, before, s.exec("find", s.source, "-printf", "%p %T@ %C@ %i %s\n").stdout, "the same once more changes nothing")

	bundle := filepath.Join(s.dir, "x.tar")
	r = s.here("bundle", "sessions/*/*.jsonl").ok(t)
	require.NoError(t, os.WriteFile(bundle, []byte(r.stdout), 0o600))
	first := filesBelow(t, s.source)
	s.source = s.mkdir("other/agent")
	r = s.here("import", bundle)
	require.Zero(t, r.code, r.stdout)
	require.Equal(t, first, filesBelow(t, s.source))
	info, err := os.Stat(bundle)
	require.NoError(t, err)
	r = s.fed(strings.Repeat("x", int(info.Size())), "import", "-")
	require.Equal(t, exitFailure, r.code)
	require.Contains(t, r.stdout, "refused: -: it is neither")
}

// TestImportIntoDatabase: all cases are imported into a table, with their times; what a row cannot hold is refused.
func TestImportIntoDatabase(t *testing.T) {
	folder := conformance(t)
	s := newStore(t, user{"self", os.Geteuid()})
	table := postgrestest.Shared(t).NewTable(t)
	const prefix = "/home/me/sessions/"
	s.source = table.Source("&prefix=" + prefix)
	imported := func(options ...string) string {
		r := s.here("import", append(options, folder)...)
		require.Equal(t, exitFailure, r.code, r.stderr)
		return r.stdout
	}
	blobs := "blobs=" + t.TempDir()
	said := imported("-o", blobs)
	require.Contains(t, said, "a database has no place for them")
	want := maps.Clone(wantedOf(t, folder, said))
	maps.DeleteFunc(want, func(name, _ string) bool { return !strings.HasSuffix(name, ".jsonl") })
	got := map[string]string{}
	rows, err := table.Query(t.Context(), `SELECT path, content, mtime_ms FROM `+table.Name)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var path, content string
		var ms int64
		require.NoError(t, rows.Scan(&path, &content, &ms))
		got["sessions/"+strings.TrimPrefix(path, prefix)] = content
		require.Greater(t, time.Since(time.UnixMilli(ms)), time.Minute, "of the file")
	}
	require.NoError(t, rows.Err())
	require.Equal(t, want, got)
	require.Regexp(t, `\n0 new, 0 longer, \d+ same, [1-9]\d* refused; `, imported("-o", blobs))
	require.NotContains(t, imported("-o", blobs), "there is no place for them,")
	require.Contains(t, imported(), "there is no place for them,", "for images")
}

// writeHalves writes the first lines of sessions, up to about a half of each, below a directory, and returns them by
// their names.
func writeHalves(t *testing.T, dir string, sessions map[string]string) map[string]string {
	t.Helper()
	halves := map[string]string{}
	for name, text := range sessions {
		end := strings.LastIndexByte(text[:len(text)/2], '\n') + 1
		if end == 0 || !strings.HasSuffix(name, ".jsonl") {
			continue
		}
		halves[name] = text[:end]
		file := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(text[:end]), 0o600))
	}
	return halves
}

// TestImportKilled: an import that is killed at any moment leaves nothing half, and the next one completes it.
func TestImportKilled(t *testing.T) {
	kills := 10
	if fullSize {
		kills = 50
	}
	folder := filepath.Join(conformance(t), "generated")
	s := newStore(t, user{"self", os.Geteuid()})
	reference := s.mkdir("reference/agent")
	start := time.Now()
	r := s.run("import", "-s", reference, folder)
	took := time.Since(start)
	require.Zero(t, r.code, r)
	want := filesBelow(t, reference)
	killed := 0
	for n := range kills {
		source := s.mkdir(fmt.Sprintf("%d/agent", n))
		before := map[string]string{}
		if n%2 == 1 { // sessions that are to grow
			before = writeHalves(t, source, want)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.Int64N(int64(took))))
		child := s.command(program, "import", "-s", source, folder)
		require.NoError(t, child.Start())
		go func() {
			<-ctx.Done()
			_ = child.Process.Kill()
		}()
		if child.Wait() != nil {
			killed++
		}
		cancel()
		for name, text := range filesBelow(t, source) {
			isUntouched := before[name] != "" && text == before[name]
			require.True(t, text == want[name] || isUntouched, "%s is half", name)
		}
		s.run("import", "-s", source, folder).ok(t)
		require.Equal(t, want, filesBelow(t, source))
	}
	require.NotZero(t, killed)
}
