package search

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/message"
)

// FuzzTouched: the bytes of a call have the needle of each file that the call, or its result,
// names.
func FuzzTouched(f *testing.F) {
	f.Setenv("HOME", "/root")
	for _, seed := range []string{
		`{"input":"*** Begin Patch\n[a.go#1A2B]\nMV \"b.go\"\n*** Update File: c.go\r\n*** End Patch"}`, `{"path":"@~/a; b/c.go:5-9;~/d"}`,
		`{"command":"f(\"*** Begin Patch\\n*** Delete File: C:\\\\new\\r\\n\", '*** Add File: it\\'s', \"*** Add File: x\")","workdir":"/w"}`,
		"{\"input\":\"* Begin Patch\\n[a.go#1A2B]\\nMV \xffobg\\\".c.go\\r\x9ddate File: c.go\\r\\n*** End Patch\"}",
		`{"input":"¶a\u00fc#1A2B\n§b\n  MV c"}`, `{"file_path":"c:\\A\\b.txt:3-9"}`, `{"path":"x","changes":{"/d":{"move_path":"file:///e"}}}`,
		`{"input":"@@ a.go\n= 1ab..1ab\n~x\n\t@@ \"b c.go\"\r\n"}`,
		`{"file":"A:\"0000000000"}`,
		`{"nestedCalls":{"calls":[{"name":"read","arguments":{"path":"a;b"}},{"id":"1","name":"write"}]},"details":{"calls":[{"id":"1","args":"{\"path\":\"x/\\u0079.go\",\"c"}]}}`,
		`{"details":{"statusEvents":[{"op":"write","path":"a/b"},{"op":"edit","input":"[a.go#1A2B]\nMV b.go"}]}}`,
	} {
		f.Add(seed)
	}
	header := rawjson.Value(`{"type":"session","cwd":"/home/dev"}`)
	f.Fuzz(func(t *testing.T, text string) {
		v := rawjson.Value(text)
		if len(text) > message.MaxPath/2 || !rawjson.IsValidObject(v) || strings.ContainsAny(text, "\n\r") {
			t.Skip()
		}
		touched, err := NewTouched("/")
		require.NoError(t, err)
		in := touched.pathsOf(header)
		held := 0
		hold := func(name string) bool {
			file := in.fileOf(name)
			if file == "" || held > 20 || strings.IndexByte(file, 0) >= 0 {
				return false
			}
			held++
			m, err := NewTouched(file)
			require.NoError(t, err)
			require.True(t, m.pathsOf(header).isNamed(name), "%q is not %q", name, file)
			n, _, err := m.Needle("", func() (rawjson.Value, error) { return header, nil })
			require.NoError(t, err)
			var s scanner
			lines, err := s.find(context.Background(), strings.NewReader(text+"\n"), int64(len(text)+1), n)
			require.NoError(t, err)
			require.NotEmpty(t, lines, "%q of %q in %s", name, file, text)
			return false
		}
		for _, tool := range []string{"edit", "read", "exec"} {
			message.EachPath(tool, v, hold)
		}
		message.EachResultPath(v, hold)
		result := message.Read(v)
		message.EachNested(&result, func(call *message.Members) {
			tool, _ := call[message.Name].Text()
			message.EachPath(tool, call[message.Arguments], hold)
		})
	})
}
