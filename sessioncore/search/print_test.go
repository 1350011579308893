package search

import (
	"regexp"
	"testing"

	"github.com/rivo/uniseg"
	"github.com/stretchr/testify/require"
)

// TestFitWords: the words around a match stay, whole ones, and never more columns than there are.
func TestFitWords(t *testing.T) {
	marks := regexp.MustCompile("(?i)tide")
	for _, c := range []struct {
		text  string
		width int
		want  string
	}{
		{"the tide turns", 40, "the tide turns"},
		{"the tide turns", 12, "…tide turns"},
		{"edit tide.go, asked: Both, please", 20, "edit tide.go,…"},
		{"…ld we wait for the tide or go on without it as we sa…", 30, "…wait for the tide or go on…"},
		{"…averylongwordwithatideinit", 40, "…averylongwordwithatideinit"},
		{"see /a/very/long/path/of/the/tide.go", 16, "/a/very/long/pa…"},
		{"nothing of it", 10, "nothing…"},
		{"漢字 潮 tide 漢字漢字漢字", 14, "漢字 潮 tide…"},
		{"", 10, ""},
		{"tide", 0, ""},
	} {
		got := fitWords(c.text, c.width, marks)
		require.Equal(t, c.want, got, c.text)
		require.LessOrEqual(t, uniseg.StringWidth(got), c.width, c.text)
	}
}

// TestShortIDs: beginnings tell ids apart, those that begin with the time are longer, and others are whole.
func TestShortIDs(t *testing.T) {
	of := func(id string) Hit { return Hit{FileHits: &FileHits{ID: id}} }
	const a, b = "7b0e2a54-31c9-4d6e-9f2b-8c41d05e6a17", "7b0e2a54-31c9-4d6e-9f2b-8c41d05e6a18"
	const late = "019d3d96-6b66-7996-8ead-42aae5653abc"
	require.Equal(t, map[string]string{a: "7b0e2a54", late: "019d3d96-6b66-7996", "s": "s"}, shortIDs([]Hit{of(a), of(late), of("s"), of(a)}))
	require.Equal(t, map[string]string{a: a, b: b}, shortIDs([]Hit{of(a), of(b), of(a)}))
}
