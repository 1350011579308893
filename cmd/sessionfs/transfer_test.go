//go:build linux

package main

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
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
	"sessionfs/source"
	"sessionfs/testdata"
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
		isSession, beside := strings.HasSuffix(file, ".jsonl"), strings.Count(place, "/") > 1
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
	folder, s := conformance(t), newStore(t, user{"self", os.Geteuid()})
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
	folder, s := conformance(t), newStore(t, user{"self", os.Geteuid()})
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

// TestImportKilled: an import that is killed at any moment leaves nothing half, and the next one completes it.
func TestImportKilled(t *testing.T) {
	kills := 10
	if os.Getenv("SESSIONFS_TEST_FULL") == "1" {
		kills = 50
	}
	folder, s := filepath.Join(conformance(t), "generated"), newStore(t, user{"self", os.Geteuid()})
	reference := s.mkdir("reference/agent")
	start := time.Now()
	r := s.run("import", "-s", reference, folder)
	took := time.Since(start)
	require.Zero(t, r.code, r)
	want := filesBelow(t, reference)
	killed := 0
	for n := range kills {
		source, before := s.mkdir(fmt.Sprintf("%d/agent", n)), map[string]string{}
		if n%2 == 1 { // sessions that are to grow
			for name, text := range want {
				if at := strings.LastIndexByte(text[:len(text)/2], '\n') + 1; strings.HasSuffix(name, ".jsonl") && at > 0 {
					before[name] = text[:at]
					require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(source, name)), 0o700))
					require.NoError(t, os.WriteFile(filepath.Join(source, name), []byte(text[:at]), 0o600))
				}
			}
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
			require.True(t, text == want[name] || before[name] != "" && text == before[name], "%s is half", name)
		}
		s.run("import", "-s", source, folder).ok(t)
		require.Equal(t, want, filesBelow(t, source))
	}
	require.NotZero(t, killed)
}

// TestImportTo: --to takes a directory in sessions/ or a working directory.
func TestImportTo(t *testing.T) {
	s := newStore(t, user{"self", os.Geteuid()})
	x := s.mkdir("copy") + "/x.jsonl"
	for to, want := range map[string]string{
		"p": "sessions/p", "p/q": "sessions/p/q", "/other/place/": "sessions/--other-place--",
	} {
		require.NoError(t, os.WriteFile(x, []byte(strings.ReplaceAll(sessionText, "1f9d2a6b9c0d1234", sha256Of(to))), 0o600))
		s.here("import", "--to", to, x).ok(t)
		require.FileExists(t, filepath.Join(s.source, want, "x.jsonl"))
	}
	requireStatus(t, exitUsage, s.here("import", "--to", "../p", x), "--to")
	requireStatus(t, exitUsage, s.here("import"), "an argument is missing")
	r := s.here("import", "-o", "ro", x)
	require.Contains(t, r.stdout, "read-only")
}

// TestImportForeign: a session of Claude Code is the same one from its file, from its directory and from a mount. The agent
// directory of another agent takes none.
func TestImportForeign(t *testing.T) {
	s := newMountable(t, user{"self", os.Geteuid()})
	home := s.mkdir(".claude")
	require.NoError(t, source.Unpack(testdata.DemoOf("claude"), home))
	s.chown()
	const id = "7b0e2a54-31c9-4d6e-9f2b-8c41d05e6a17"
	file := filepath.Join(home, "projects/-home-dev-tidetable", id+".jsonl")
	r := s.here("import", file).ok(t)
	require.Regexp(t, `^new +sessions/--home-dev-tidetable--/2026-05-12T09-02-18-752Z_\S+\.jsonl\n1 new, 0 longer, 0 same, 0 refused\n$`, r.stdout)
	want := filesBelow(t, s.source)
	s.source, home = home, s.source
	s.mount()
	s.source, home = home, s.source
	r = s.here("import", home, s.in("recent/01-Calendar times in UTC"), s.in("sessions/-home-dev-tidetable"))
	require.Regexp(t, `^(same .*\n){3}0 new`, r.stdout)
	require.Equal(t, want, filesBelow(t, s.source))
	r = s.here("import", s.in("by-id/"+id)+"#46287225-154d-4eb0-871d-14815649f8e9")
	require.Contains(t, r.stdout, "1 new")
	r = s.run("import", "-s", home, file)
	requireStatus(t, exitUsage, r, "name the agent directory of omp or pi")
}

// TestBundleRefuses: what is no session ends it, and a terminal gets no archive.
func TestBundleRefuses(t *testing.T) {
	s := commandStore(t)
	requireStatus(t, exitFailure, s.here("bundle", "nothing"), "nothing is not a session")
	requireStatus(t, exitFailure, s.here("bundle", "sessions"), "sessions is not a session")
	requireStatus(t, exitUsage, s.here("bundle", "by-id/019d3d9/leaf"), "names an entry")
	requireStatus(t, exitUsage, s.here("bundle"), "an argument is missing")
	r := s.here("bundle", "019d3d9", "019d3d9", "recent/0*", "by-id/*").ok(t)
	require.Equal(t, 1, strings.Count(r.stdout, `"id":"019d3d96-6b66-7996-8ead-42aae5653abc"`), "once")
	terminal := s.command("script", "-q", "-e", "-c", program+" bundle -s "+s.source+" 019d3d9", "/dev/null")
	terminal.Stdin = strings.NewReader("")
	r = s.finish(terminal)
	require.Equal(t, exitUsage, r.code)
	require.Contains(t, r.stdout, "would go to the terminal")
}

func TestExport(t *testing.T) {
	s := commandStore(t)
	r := s.here("export", "019d3d9").ok(t)
	require.Contains(t, r.stdout, "<title>An hour late, a hand too high</title>")
	require.Contains(t, r.stdout, "CI has been red since Sunday morning")
	require.Equal(t, 1, strings.Count(r.stdout, "<script"))
	require.Contains(t, r.stdout, "could a sheet come out as a calendar")
	require.NotContains(t, s.here("export", "019d3d9#6d471159").stdout, "could a sheet come out as a calendar")
	require.Contains(t, s.here("export", "recent/04-*/artifacts/Task-1").stdout, "<main")
	for _, name := range []string{"by-id/019d3d9", "recent/04-*"} {
		require.Equal(t, r, s.here("export", name), name)
	}
	require.NotContains(t, s.here("export", "by-id/019d3d9/branches/current").stdout, "could a sheet come out as a calendar")
	require.Contains(t, s.here("export", "by-id/019d3d9/branches/6ab2fbe0").stdout, "could a sheet come out as a calendar")

	blobs := glob(t, filepath.Join(s.source, "blobs", "*"))
	require.NotEmpty(t, blobs)
	image := readFile(t, blobs[0])
	data := base64.StdEncoding.EncodeToString(image)
	all := ""
	for _, id := range strings.Fields(s.here("ls", "by-id").stdout) {
		all += s.here("export", id).stdout
	}
	require.Contains(t, all, `base64,`+data+`"`, "an image is in the page")

	requireStatus(t, exitFailure, s.here("export", "none"), "none is not a session")
	requireStatus(t, exitUsage, s.here("export", "by-id/*"), "5 sessions")
	requireStatus(t, exitUsage, s.here("export"))
}

// A page for others has no known key in it and no image.
func TestExportRedacted(t *testing.T) {
	s := commandStore(t)
	key := "AKIA" + "Z7QF3XW2MN5RT4YK"
	message := `{"type":"message","message":{"role":"user","content":"the key is ` + key + ` <script>alert(1)</script>"}}` + "\n"
	require.Zero(t, s.fed(message, "write", "by-id/019d3d9/append").code)
	r := s.here("export", "019d3d9")
	require.Contains(t, r.stdout, key)
	require.Contains(t, r.stdout, "&lt;script&gt;alert(1)&lt;/script&gt;")
	rules := filepath.Join(t.TempDir(), "rules.toml")
	require.NoError(t, os.WriteFile(rules, []byte("[[rules]]\nid = \"word\"\nregex = 'key is'\n"), 0o600))
	for options, said := range map[string]string{"redact": ": 1 (1 aws-access-token)\n", "redact-rules=" + rules: ": 2 (1 aws-access-token, 1 word)\n"} {
		r = s.here("export", "-o", options, "by-id/019d3d9/branches/current").ok(t)
		require.NotContains(t, r.stdout, key)
		require.Equal(t, options == "redact", strings.Contains(r.stdout, "the key is "))
		require.NotContains(t, r.stdout, "base64,")
		require.Equal(t, "sessionfs: export: secrets masked in the whole session"+said, r.stderr)
		r = s.here("bundle", "--redact", "-o", options, "019d3d9")
		require.NotContains(t, r.stdout, key)
		require.Contains(t, r.stderr, "sessionfs: bundle: secrets masked in the bundle"+said)
		require.Equal(t, said[2:3], fmt.Sprint(strings.Count(s.here("cat", "-o", options, "by-id/019d3d9/secrets.jsonl").stdout, "\n")))
	}
	require.NoError(t, os.WriteFile(rules, []byte("\n[[rules]]\nid = \"word\"\nregex = '('\n"), 0o600))
	r = s.here("export", "-o", "redact-rules="+rules, "019d3d9")
	requireStatus(t, exitUsage, r, `-o redact-rules: read `+rules+`: rule "word" (line 2): error parsing regexp`)
}
