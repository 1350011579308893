package writer

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/internal/sessiontest"
)

// TestTaken appends lines of all types in each documented shape, and of all roles and blocks, as clients and as people write
// them. Each is accepted by a session of its own, which stays one of its dialect.
func TestTaken(t *testing.T) {
	for dialect, test := range map[*sessioncore.Dialect]struct {
		file, lines string
		program     sessioncore.Program
	}{
		sessioncore.OMP:      {plainFile, "testdata/taken.jsonl", sessioncore.ByOMP},
		sessioncore.Pi:       {plainFile, "testdata/taken-pi.jsonl", sessioncore.ByPi},
		sessioncore.Operator: {opFile, "testdata/taken-operator.jsonl", sessioncore.ByOMP},
	} {
		text, err := os.ReadFile(test.lines)
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			w := startMemory(t, test.file, Options{})
			w.store.SetProgram(func(string) sessioncore.Program { return test.program })
			w.adds(strings.TrimSuffix(line, "\n"))
			require.Same(t, dialect, w.snapshot().Dialect(), line)
		}
	}
}

// TestClientsEntriesAreValid: whatever a client wrote can be written through the mount.
func TestClientsEntriesAreValid(t *testing.T) {
	sessiontest.NotUnderRace(t)
	roots := []string{"../../testdata/demo", "../../testdata/xcsh", "../../testdata/pi"}
	for _, c := range sessiontest.Cases(t) {
		if !strings.HasPrefix(c.Name, "handmade/") {
			roots = append(roots, filepath.Join(c.Dir, "agent"))
		}
	}
	for _, root := range roots {
		entries := 0
		require.NoError(t, filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, ".jsonl") {
				entries += reappended(t, path)
			}
			return err
		}))
		require.NotZero(t, entries, root)
	}
}

// reappended checks that each entry of a session can be appended to another one, without its id and its parent. It returns
// the number of entries.
func reappended(t *testing.T, path string) (entries int) {
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	source := startMemory(t, string(content), Options{})
	snap, err := source.session.Acquire(context.Background())
	if errors.Is(err, sessioncore.ErrNotSession) {
		return 0
	}
	require.NoError(t, err)
	defer snap.Release()
	for e := range sessioncore.Entry(snap.Len()) {
		kind := snap.Kind(e)
		if shapes()["omp/"+kind.String()] == nil {
			continue // of a type that cannot be appended
		}
		text, err := snap.ShownText(e)
		require.NoError(t, err)
		if kind == sessioncore.TypeCompaction && text.Member("firstKeptEntryId") == nil {
			continue // one of version 1 that keeps nothing
		}
		bare := rawjson.SetMembers(text, []rawjson.Field{{Key: "id"}, {Key: "parentId"}})
		_, err = parseDraft(bare, sessioncore.OMP, PersistRules{Blobs: true})
		require.NoError(t, err, "%s: %.300s", path, text)
		entries++
	}
	return entries
}
