package view

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/sessiontest"
)

// downloadOf returns the lines in a page, and their name; "" where it has none.
func downloadOf(t *testing.T, page string) (name, lines string) {
	t.Helper()
	template := regexp.MustCompile(`<template id="/lines" data-name="([^"]*)">([A-Za-z0-9+/=]*)</template>\n`)
	found := template.FindStringSubmatch(page)
	if found == nil {
		require.NotContains(t, page, `id="/lines"`)
		return "", ""
	}
	all := found[0]
	name = found[1]
	packed, err := base64.StdEncoding.DecodeString(found[2])
	require.NoError(t, err)
	in, err := gzip.NewReader(bytes.NewReader(packed))
	require.NoError(t, err)
	text, err := io.ReadAll(in)
	require.NoError(t, err)
	const mostFrame = 200 // bytes around the data
	rest := len(page) - len(all)
	require.Less(t, len(all), rest/downloadShare+mostFrame)
	return name, string(text)
}

// TestDownload: a page has the lines of its session, byte for byte, and of a branch alone those of the branch. One that they
// would make much larger has none.
func TestDownload(t *testing.T) {
	name, lines := downloadOf(t, pageOf(t, treeLines))
	require.Equal(t, sessiontest.Header+treeLines, lines)
	require.Regexp(t, `^[0-9a-z-]+\.jsonl$`, name)
	_, lines = downloadOf(t, pageOf(t, treeLines, "e3"))
	require.True(t, strings.HasPrefix(lines, sessiontest.Header))
	require.Equal(t, 1+4, strings.Count(lines, "\n"), "the header, e0 to e3")
	require.NotContains(t, lines, `"new"`)

	// A page without images, which is a masked one, has no lines that may have them.
	var out bytes.Buffer
	s := snapshotOf(t, sessiontest.Header, treeLines)
	require.NoError(t, Page(context.Background(), &out, Subject{Session: s, End: sessiontest.Leaf(t, s)}))
	name, _ = downloadOf(t, out.String())
	require.Empty(t, name)

	// Details of a result are not on the page.
	large := sessiontest.MessageLine(0, `{"role":"toolResult","toolCallId":"c1","toolName":"bash","details":"`+random(200_000)+`","content":[{"type":"text","text":"ok"}]}`)
	name, _ = downloadOf(t, pageOf(t, large))
	require.Empty(t, name)
}

// random returns so many characters that do not shrink in compression.
func random(count int) string {
	text := make([]byte, count)
	state := uint64(1)
	for i := range text {
		state = state*6364136223846793005 + 1442695040888963407
		text[i] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+_"[state>>58]
	}
	return string(text)
}
