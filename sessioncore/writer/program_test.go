package writer

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/program"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

// putMemory puts files into a storage in memory.
func putMemory(t testing.TB, files map[string]string) *memory.Storage {
	m := memory.New()
	for name, content := range files {
		require.NoError(t, m.WriteFile(name, []byte(content)))
	}
	return m
}

func TestProgramOfFile(t *testing.T) {
	tests := []struct {
		content string
		want    program.Program
	}{
		{plainFile, program.Unknown},
		{plainHeader + `{"type":"model_change","id":"m","parentId":null,"provider":"openai","modelId":"gpt"}` + "\n", program.Pi},
		{plainHeader + `{"type":"model_change","id":"m","parentId":null,"model":"openai/gpt"}` + "\n", program.OMP},
		{plainFile + `{"type":"session_info","id":"i","parentId":null,"name":"x"}` + "\n", program.Pi},
		{string(titleSlot("T", titleByUser, plainNow)) + plainFile, program.OMP},
		{`{"type":"session","id":"s","modelId":"claude"}` + "\n", program.Pi},
		{"nonsense\n", program.Unknown},
		{"", program.Unknown},
	}
	for _, test := range tests {
		m := putMemory(t, map[string]string{"d/x.jsonl": test.content})
		require.Equal(t, test.want, programOfFile(m, "d/x.jsonl"), test.content)
	}
	require.Equal(t, program.Unknown, programOfFile(memory.New(), "gone.jsonl"))
}

// TestImagesOfPi: in a session of pi images stay in the line, whole; pi has no blobs.
func TestImagesOfPi(t *testing.T) {
	sessiontest.NotUnderRace(t)
	const (
		marked = `{"type":"model_change","id":"m","parentId":null,"timestamp":"2026-02-16T10:20:30.000Z","provider":"openai","modelId":"gpt"}` + "\n"
		omps   = `{"type":"model_change","id":"m","parentId":null,"timestamp":"2026-02-16T10:20:30.000Z","model":"openai/gpt"}` + "\n"
	)
	huge := strings.Repeat("QUJD", 500_000/3)
	line := `{"type":"message","message":{"role":"user","content":[{"type":"image","mimeType":"image/png","data":"` + huge + `"}],"image_url":"data:image/png;base64,` + huge + `"}}`
	is := func(p program.Program) func() program.Program { return func() program.Program { return p } }
	tests := []struct {
		name     string
		content  string
		root     func() program.Program
		neighbor string
		inline   bool
	}{
		{"the root is pi's", plainFile, is(program.Pi), "", true},
		{"the file is pi's", plainHeader + marked, is(program.Unknown), "", true},
		{"nobody knows the root", plainHeader + marked, nil, "", true},
		{"other sessions are pi's", plainFile, nil, plainHeader + marked, true},
		{"the root is omp's", plainHeader + marked, is(program.OMP), "", false},
		{"the file is omp's", plainHeader + omps, nil, plainHeader + marked, false},
		{"nobody says anything", plainFile, nil, "", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			files := map[string]string{plainName: test.content}
			if test.neighbor != "" {
				files["elsewhere/2026-01-01T00-00-00-000Z_x.jsonl"] = test.neighbor
			}
			w := startWriting(t, putMemory(t, files), "", Options{})
			if test.root != nil {
				w.store.SetProgram(test.root)
			}
			_, err := w.append(line, line)
			require.NoError(t, err)
			added := w.content()[len(test.content):]
			require.Equal(t, test.inline, strings.Count(added, `"data":"`+huge+`"`) == 2)
			require.Equal(t, test.inline, strings.Count(added, `base64,`+huge+`"`) == 2)
			require.Equal(t, test.inline, !strings.Contains(added, rawjson.BlobPrefix))
			require.Equal(t, test.inline, len(w.blobs.blobs) == 0)
		})
	}
}
