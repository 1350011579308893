package writer

import (
	"encoding/json"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/internal/sessiontest"
)

var repetition = regexp.MustCompile(`<(.+?)\*(\d+)>`)

// repeated returns a text of testdata, in which <x*500001> is a text repeated.
func repeated(text string) string {
	return repetition.ReplaceAllStringFunc(text, func(run string) string {
		m := repetition.FindStringSubmatch(run)
		n, _ := strconv.Atoi(m[2])
		return strings.Repeat(m[1], n)
	})
}

// persist returns the text after the size controls of omp 18 or, without newer, of omp 14.9.9.
func persist(t *testing.T, text string, newer bool) (persisted string, blobs []BlobReference) {
	got, err := Persist(rawjson.Value(text), PersistRules{Blobs: true, Newer: newer})
	require.NoError(t, err)
	require.True(t, json.Valid(got.Text))
	return string(got.Text), got.Blobs
}

// TestPersist compares with the results of omp 14.9.9. A page gives a result, or the first 16 digits of its SHA-256.
func TestPersist(t *testing.T) {
	sessiontest.NotUnderRace(t)
	sessiontest.Page(t, "testdata/persist.txt", func(t *testing.T, name, give, want string) {
		got, _ := persist(t, repeated(give), false)
		want = strings.TrimSuffix(want, "\n")
		isHash := len(want) == 16
		if isHash {
			got = BlobName([]byte(got))[:16]
		}
		require.Equal(t, repeated(want), got, name)
	})
	got, _ := persist(t, `{"s":"`+strings.Repeat("\xff", maxPersist+1)+`"}`, false)
	require.Equal(t, `{"s":"`+strings.Repeat("�", maxPersist-noticeUnits)+truncationNotice+`"}`, got, "ill-formed bytes count as one unit")
}

// TestPersistNewer compares with the results of omp 18.2.3 for 400 entries of random parts that the size controls look at. Each line of
// the file has the first 16 digits of the SHA-256 of the result, with the names and endings of its blobs, and the entry.
func TestPersistNewer(t *testing.T) {
	sessiontest.NotUnderRace(t)
	recorded, err := os.ReadFile("testdata/persist-18.2.3.txt")
	require.NoError(t, err)
	require.Equal(t, 400, strings.Count(string(recorded), "\n"))
	for line := range strings.Lines(string(recorded)) {
		want, give, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		got, blobs := persist(t, repeated(give), true)
		text := got
		for _, b := range blobs {
			text += " " + BlobName(b.Data) + "." + b.Ending
		}
		require.Equal(t, want, BlobName([]byte(text))[:16], "%s\nbecame %.2000s", give, got)
	}
}

// TestPersistDepth: a text of maxDepth levels is taken, one of more is refused.
func TestPersistDepth(t *testing.T) {
	nest := func(n int) rawjson.Value { return rawjson.Value(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	_, err := Persist(nest(maxDepth), PersistRules{Blobs: true})
	require.NoError(t, err)
	_, err = Persist(nest(maxDepth+1), PersistRules{Blobs: true})
	require.ErrorIs(t, err, sessioncore.ErrInvalid)
}

// FuzzPersist: the result is valid JSON of valid UTF-8, and a second time changes nothing.
func FuzzPersist(f *testing.F) {
	for _, seed := range []string{
		`{"partialJson":1}`,
		`{"a":[{"content":[{"type":"image","data":"` + longBase64 + `"}]}],"jsonlEvents":{}}`,
		`{"image_url":"data:image/;base64,"}`,
		`{ "a" : "\ud800" , "partialJson" : [ ] }`,
		"{\"\xff\":\"\xe2\x82\"}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v := rawjson.Value(text)
		if !rawjson.IsValidObject(v) {
			return
		}
		once, err := Persist(v, PersistRules{Blobs: true})
		require.NoError(t, err)
		require.True(t, json.Valid(once.Text) && utf8.Valid(once.Text), "%q", once.Text)
		twice, err := Persist(once.Text, PersistRules{Blobs: true})
		require.NoError(t, err)
		require.Equal(t, string(once.Text), string(twice.Text))
		require.Empty(t, twice.Blobs)
	})
}
