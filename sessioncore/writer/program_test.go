package writer

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage/memory"
)

// putMemory puts files into a storage in memory.
func putMemory(t testing.TB, files map[string]string) *memory.Storage {
	m := memory.New()
	for name, content := range files {
		require.NoError(t, m.WriteFile(name, []byte(content)))
	}
	return m
}

func TestProgramOfRoot(t *testing.T) {
	tests := []struct {
		name, path, has string
		want            Program
	}{
		{"pi's path", "/home/dev/.pi/agent", "", ProgramPi},
		{"with a slash", "/home/dev/.pi/agent/", "blobs", ProgramPi},
		{"omp's path says nothing that its files do not", "/home/dev/.omp/agent", "agent.db terminal-sessions blobs", ProgramOMP},
		{"omp once had pi's files", "/srv/agent", "auth.json settings.json agent.db", ProgramOMP},
		{"a pi root elsewhere", "/srv/agent", "auth.json settings.json sessions", ProgramPi},
		{"a pi root in which somebody made blobs", "/srv/agent", "auth.json blobs", ProgramPi},
		{"blobs alone", "/srv/agent", "blobs sessions", ProgramOMP},
		{"nothing", "/srv/agent", "sessions", ProgramUnknown},
		{"a name that ends alike", "/srv/x.pi/agent", "sessions", ProgramUnknown},
	}
	for _, test := range tests {
		files := map[string]string{}
		for _, name := range strings.Fields(test.has) {
			files[name+"/x"] = "" // directory or file, what counts is the name
		}
		require.Equal(t, test.want, ProgramOfRoot(putMemory(t, files), "", test.path), test.name)
	}
}

func TestProgramOfFile(t *testing.T) {
	tests := []struct {
		content string
		want    Program
	}{
		{plainFile, ProgramUnknown},
		{plainHeader + `{"type":"model_change","id":"m","parentId":null,"provider":"openai","modelId":"gpt"}` + "\n", ProgramPi},
		{plainHeader + `{"type":"model_change","id":"m","parentId":null,"model":"openai/gpt"}` + "\n", ProgramOMP},
		{plainFile + `{"type":"session_info","id":"i","parentId":null,"name":"x"}` + "\n", ProgramPi},
		{string(titleSlot("T", plainNow)) + plainFile, ProgramOMP},
		{`{"type":"session","id":"s","modelId":"claude"}` + "\n", ProgramPi},
		{"nonsense\n", ProgramUnknown},
		{"", ProgramUnknown},
	}
	for _, test := range tests {
		m := putMemory(t, map[string]string{"d/x.jsonl": test.content})
		require.Equal(t, test.want, programOfFile(m, "d/x.jsonl"), test.content)
	}
	require.Equal(t, ProgramUnknown, programOfFile(memory.New(), "gone.jsonl"))
}

// TestImagesOfPi: in a session of pi images stay in the line, whole; pi has no blobs.
func TestImagesOfPi(t *testing.T) {
	const (
		marked = `{"type":"model_change","id":"m","parentId":null,"timestamp":"2026-02-16T10:20:30.000Z","provider":"openai","modelId":"gpt"}` + "\n"
		omps   = `{"type":"model_change","id":"m","parentId":null,"timestamp":"2026-02-16T10:20:30.000Z","model":"openai/gpt"}` + "\n"
	)
	huge := strings.Repeat("QUJD", maxPersist/3)
	line := `{"type":"message","message":{"role":"user","content":[{"type":"image","mimeType":"image/png","data":"` + huge + `"}],"image_url":"data:image/png;base64,` + huge + `"}}`
	is := func(p Program) func() Program { return func() Program { return p } }
	tests := []struct {
		name     string
		content  string
		root     func() Program
		neighbor string
		inline   bool
	}{
		{"the root is pi's", plainFile, is(ProgramPi), "", true},
		{"the file is pi's", plainHeader + marked, is(ProgramUnknown), "", true},
		{"nobody knows the root", plainHeader + marked, nil, "", true},
		{"other sessions are pi's", plainFile, nil, plainHeader + marked, true},
		{"the root is omp's", plainHeader + marked, is(ProgramOMP), "", false},
		{"the file is omp's", plainHeader + omps, nil, plainHeader + marked, false},
		{"nobody says anything", plainFile, nil, "", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			files := map[string]string{plainName: test.content}
			if test.neighbor != "" {
				files["elsewhere/2026-01-01T00-00-00-000Z_x.jsonl"] = test.neighbor
			}
			w := startWriting(t, putMemory(t, files), "", Options{Program: test.root})
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
