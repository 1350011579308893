package sessioncore

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

func TestOfRoot(t *testing.T) {
	programs := []string{ByUnknown: "unknown", ByOMP: "omp", LikelyByPi: "likely pi", ByPi: "pi"}
	sessiontest.Table(t, "testdata/programs.txt", func(t *testing.T, _, give string) string {
		root, words := memory.New(), strings.Fields(give)
		for _, name := range words[1:] {
			require.NoError(t, root.WriteFile(name+"/x", nil)) // directory or file, what counts is the name
		}
		return programs[ProgramOfRoot(root, "", words[0])]
	})
}

func TestMarks(t *testing.T) {
	marks := map[Marks]string{MarkPi: "pi", MarkOMP: "omp", 0: "either"}
	sessiontest.Table(t, "testdata/marks.txt", func(_ *testing.T, _, entry string) string { return marks[MarksOf(rawjson.Value(entry))] })
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
