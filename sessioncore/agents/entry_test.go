package agents

import (
	"runtime"
	"strings"
	"testing"
	"unsafe"
	"weak"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/rawjson"
)

// TestTitlesAreShort: a title is bounded, and keeps no memory of the text that it begins.
func TestTitlesAreShort(t *testing.T) {
	long := strings.Repeat("é", 10000)
	require.Equal(t, "x"+strings.Repeat("é", 99)+"…", FirstLine("x"+long), "no character is cut")
	require.LessOrEqual(t, len(Name(long)), maxName+len("…"))
	require.True(t, strings.HasSuffix(Name(long), "é…"))
	require.Equal(t, "a\nb", Name("a\nb"))
	for name, cut := range map[string]func(text string) string{
		"the first line": FirstLine,
		"a part":         func(text string) string { return Name(text[:5]) },
		"a long title":   Name,
	} {
		title, memory := cutOfLong(cut)
		require.True(t, strings.HasPrefix(title, "title"), name)
		runtime.GC()
		require.Nil(t, memory.Value(), name)
		runtime.KeepAlive(title)
	}
}

// cutOfLong returns what is cut of a long text, and a pointer to the text that does not keep it.
func cutOfLong(cut func(text string) string) (title string, memory weak.Pointer[byte]) {
	text := strings.Clone("title\n" + strings.Repeat("x", 1<<20))
	return cut(text), weak.Make(unsafe.StringData(text))
}

// TestNamesAreShort: a long name of a tool or a model is cut, and another one stays as it is.
func TestNamesAreShort(t *testing.T) {
	require.Equal(t, `"read"`, string(nameOf(rawjson.Value(`"read"`))))
	long := Quoted(strings.Repeat("é", 10000))
	cut := Quoted(strings.Repeat("é", maxName/2) + "…")
	require.Equal(t, string(cut), string(nameOf(long)))
}
