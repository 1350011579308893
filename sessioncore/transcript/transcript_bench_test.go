package transcript

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/internal/sessiontest"
)

// said is what models write: Markdown with most of what it has, and words alone.
var said = []struct{ name, text string }{
	{"words", strings.Repeat("The quick brown fox jumps over the lazy dog, and then it sits down to think about it. ", 12) + "\n\n"},
	{"markdown", "## What changed\n\nThe parser *keeps* its `state<T>` between lines, see [the issue](https://example.com/a).\n\n" +
		"1. First, build it:\n\n   ```sh\n   # all of it\n   go build ./... 2>&1 | tail\n   ```\n\n2. Then look at `<div>` and **the rest**:\n   - one\n   - two\n\n" +
		"```go\nfunc find(ch <-chan int) {\n\tfor v := range ch {\n\t\tfmt.Println(v) // # not a heading\n\t}\n}\n```\n\n" +
		"| name | what |\n| ---- | ---- |\n| `a` | the first |\n| `b` | the second |\n\n> A quote of two\n> lines.\n\n"},
}

// BenchmarkTranscript renders transcript.md of a session of answers, each from its session file anew: once for the
// sizes and once to be read. The figure is bytes of text.
func BenchmarkTranscript(b *testing.B) {
	for _, answer := range said {
		b.Run(answer.name, func(b *testing.B) {
			var file strings.Builder
			file.WriteString(sessiontest.Header)
			for i := range 1000 {
				role := []string{"user", "assistant"}[i%2]
				text := rawjson.AppendQuoted(nil, strings.Repeat(answer.text, 1+i%5))
				file.WriteString(sessiontest.MessageLine(i, fmt.Sprintf(`{"role":%q,"content":[{"type":"text","text":%s}]}`, role, text)))
			}
			name := filepath.Join(b.TempDir(), "long.jsonl")
			require.NoError(b, os.WriteFile(name, []byte(file.String()), 0o600))
			for b.Loop() {
				s, err := openSession(b, name)
				require.NoError(b, err)
				d, err := Render(context.Background(), s, sessiontest.Leaf(b, s), testLinks)
				require.NoError(b, err)
				n, err := io.Copy(io.Discard, io.NewSectionReader(d, 0, d.Size()))
				require.NoError(b, err)
				b.SetBytes(n)
			}
		})
	}
}
