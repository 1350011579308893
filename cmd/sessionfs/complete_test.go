//go:build linux

package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCompletions(t *testing.T) {
	s := commandStore(t)
	for typed, want := range map[string]string{
		"r": "recent/\n:6\n", "by-id/019d42": "by-id/019d42a6-5232-7813-8906-b2eb1701614a/\n:6\n",
		"by-id/019d3d9/tr": "by-id/019d3d9/transcript.md\nby-id/019d3d9/tree/\n:6\n",
		"by-id/019d3d9/ti": "by-id/019d3d9/title\n:4\n", "by-id/019d3d9/le": "by-id/019d3d9/leaf\n:4\n", "none/": ":4\n",
	} {
		var out, stderr bytes.Buffer
		code := run([]string{"sessionfs", "__complete", "cat", "-s", s.source, typed}, streams{nil, &out, &stderr})
		require.Zero(t, code)
		require.Equal(t, want, out.String(), typed)
	}
	var out, stderr bytes.Buffer
	require.Zero(t, run([]string{"sessionfs", "__complete", "ex"}, streams{nil, &out, &stderr}))
	require.Contains(t, out.String(), "export\tWrite a session")
	for _, shell := range []string{"bash", "zsh", "fish"} {
		out.Reset()
		require.Zero(t, run([]string{"sessionfs", "completion", shell}, streams{nil, &out, &stderr}))
		require.Greater(t, strings.Count(out.String(), "sessionfs"), 10)
	}
	r := s.here("ls", "-s", "/nowhere")
	requireStatus(t, exitSource, r)
}
