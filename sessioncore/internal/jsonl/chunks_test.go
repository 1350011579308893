package jsonl

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/rawjson"
)

// checkChunks: how a file is cut into chunks, and by how many goroutines it is read, changes nothing.
func checkChunks(t *testing.T, data []byte) {
	units := func(chunk int64, load func(l *loader) error) (out []string) {
		l := &loader{ctx: t.Context(), obj: bytes.NewReader(data), size: int64(len(data)), chunk: chunk, emit: func(u *Unit) error {
			out = append(out, fmt.Sprintf("%d %s %d %d %d %q %v %d", u.Kind, u.Reason, u.Line, u.Off, u.Size, u.Text, u.EndsLine, u.Trailing))
			if u.Info != nil {
				out = append(out, fmt.Sprintf("%d %v %v %v %v %v %v %v", u.Info.CRC, u.Info.Type, u.Info.ID, u.Info.Parents, u.Info.Time, u.Info.Message, u.Info.Role, u.Info.Tool))
			}
			return nil
		}}
		require.NoError(t, load(l))
		return append(out, fmt.Sprint(l.resume))
	}
	start := bomLen(bytes.NewReader(data))
	want := units(ChunkSize, func(l *loader) error { return l.inline(context.Background(), start, 0) })
	require.Equal(t, want, units(1, func(l *loader) error { return l.inline(context.Background(), start, 0) }), "small chunks")
	require.Equal(t, want, units(7, func(l *loader) error { return l.pipeline(context.Background(), start, 0) }), "in parallel")
}

// FuzzLines: the lines of a chunk are those between its newlines, each classified by itself.
func FuzzLines(f *testing.F) {
	addCases(f)
	for _, text := range []string{
		"{}\n", "{}", "{}\n\n{}", " \t{\"a\":1} \r\n", "{\n}\n", "{\"a\":\n1}\n{}\n", "{\"a\n\":1}\n", "[1,\n2]\n", "{} {}\n", "{} x\n{}\n",
		"1\n2\n", "tru\ne\n", "\"\n\"\n", "{\"message\":\n{}}\n{}", "\r\n \n{}\n", "{\"type\"\n:1}\n", "{\"a\":1\n,\"b\":2}\n", "{", "-\n1\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var s rawjson.Scanner
		c := chunk{buf: data}
		c.classify(&s)
		var want []LineInfo
		lines := bytes.SplitAfter(data, []byte("\n"))
		at, newlines := 0, int64(0)
		for _, line := range lines {
			text, whole := bytes.CutSuffix(line, []byte("\n"))
			info := LineInfo{start: uint32(at), length: uint32(len(text)), number: uint32(newlines)}
			if classify(&s, text, &info); info.class != lineBlank {
				want = append(want, info)
			}
			at += len(line)
			if whole {
				newlines++
			}
		}
		require.Equal(t, want, c.lines)
		require.Equal(t, newlines, c.newlines)
	})
}

func FuzzChunks(f *testing.F) {
	addCases(f)
	f.Fuzz(checkChunks)
}

func addCases(f *testing.F) {
	f.Helper()
	files, err := filepath.Glob("../../../testdata/cases/*.jsonl")
	require.NoError(f, err)
	require.NotEmpty(f, files)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(data)
	}
}
