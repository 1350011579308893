package sessioncore

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage/storagetest"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

// TestOfRoot: the program of an agent directory is told by its path and the names in it.
func TestOfRoot(t *testing.T) {
	programs := []string{ByUnknown: "unknown", ByOMP: "omp", LikelyByPi: "likely pi", ByPi: "pi"}
	sessiontest.Table(t, "testdata/programs.txt", func(t *testing.T, _, give string) string {
		root := memory.New()
		words := strings.Fields(give)
		for _, name := range words[1:] {
			require.NoError(t, root.WriteFile(name+"/x", nil)) // directory or file, what counts is the name
		}
		return programs[ProgramOfRoot(root, "", words[0])]
	})
}

// TestMarks: an entry has a mark of the program that alone writes such entries.
func TestMarks(t *testing.T) {
	names := map[Marks]string{MarkPi: "pi", MarkOMP: "omp", 0: "either"}
	sessiontest.Table(t, "testdata/marks.txt", func(_ *testing.T, _, entry string) string {
		marks := MarksOf(rawjson.Value(entry))
		return names[marks]
	})
}

// TestOfSession: nothing makes a file of omp one of pi.
func TestOfSession(t *testing.T) {
	for _, root := range []Program{ByUnknown, ByOMP, LikelyByPi, ByPi} {
		require.Equal(t, ByOMP, ProgramOfSession(root, MarkOMP), root)
		require.Equal(t, ByOMP, ProgramOfSession(root, MarkOMP|MarkPi), root)
	}
	for root, want := range map[Program][2]Program{ByUnknown: {ByOMP, ByPi}, ByOMP: {ByOMP, ByOMP}, LikelyByPi: {ByOMP, ByPi}, ByPi: {ByPi, ByPi}} {
		require.Equal(t, want, [2]Program{ProgramOfSession(root, 0), ProgramOfSession(root, MarkPi)}, root)
	}
}

// TestRacyRoot: an agent directory that changed within a tick of the clock of file times is checked again.
func TestRacyRoot(t *testing.T) {
	for racy, want := range map[bool]Program{true: ByPi, false: ByUnknown} {
		mem := memory.New()
		root := NewProgramRoot(&storagetest.Stopped{Storage: mem, At: storagetest.Ticking(racy)})
		require.Equal(t, ByUnknown, root.Program(""))
		require.NoError(t, mem.WriteFile(piNames[0], nil))
		require.Equal(t, want, root.Program(""), "racy: %v", racy)
	}
}
