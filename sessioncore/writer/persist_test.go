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

// jsonString is a JSON string of n times a text.
func jsonString(text string, n int) string { return `"` + strings.Repeat(text, n) + `"` }

// TestPersist compares with what omp 14.9.9 wrote of the same values: the first 16 digits of the SHA-256
// of the JSON, or the JSON itself where it is short.
func TestPersist(t *testing.T) {
	sessiontest.NotUnderRace(t)
	x := func(n int) string { return strings.Repeat("x", n) }
	const face = "\U0001F600"
	tests := []struct{ name, give, want string }{
		{"whole", `{"s":"` + x(500_000) + `"}`, "4ff2577447ad89ad"},
		{"cut", `{"s":"` + x(500_001) + `"}`, "fdfa52641be41585"},
		{"pair split", `{"s":"` + x(499_952) + face + strings.Repeat("y", 100) + `"}`, "e5bfe361d89aadf8"},
		{"pair kept", `{"s":"` + x(499_951) + face + strings.Repeat("y", 100) + `"}`, "e40e7791f924f9f4"},
		{"lone high at the cut", `{"s":"` + x(499_952) + `\ud83d` + strings.Repeat("y", 100) + `"}`, "e5bfe361d89aadf8"},
		{"lone low at the cut", `{"s":"` + x(499_952) + `\ude00` + strings.Repeat("y", 100) + `"}`, "6767d48d6e89c43e"},
		{"pairs, whole", `{"s":` + jsonString(face, 250_000) + `}`, "9cd927d77417523b"},
		{"pairs, cut", `{"s":` + jsonString(face, 250_001) + `}`, "341e9d0d9dfb443a"},
		{"three bytes", `{"s":` + jsonString("€", 500_001) + `}`, "1f6efa1adc7994cc"},
		{"signatures", `{"thinkingSignature":` + jsonString("s", 500_001) + `,"thoughtSignature":` + jsonString("s", 500_001) +
			`,"textSignature":[` + jsonString("s", 500_001) + `,"t"],"x":{"textSignature":` + jsonString("s", 500_000) + `}}`, "9b10dbd66ac5899c"},
		{"transient", `{"partialJson":"p","a":[{"jsonlEvents":[1,{"partialJson":2}]},{"x":1,"partialJson":{},"y":2},` +
			`{"x":1,"jsonlEvents":1,"partialJson":2}],"partialJson":null}`, `{"a":[{},{"x":1,"y":2},{"x":1}]}`},
		{"line count", `{"content":"a\n` + x(500_001) + `\nb","lineCount":3}`, "247719d18dbed0b1"},
		{"line count first", `{"lineCount":9,"content":` + jsonString(`\n`, 500_001) + `}`, "b6d2277cd0f37dbb"},
		{"line count no number", `{"lineCount":"9","content":` + jsonString(`\n`, 500_001) + `}`, "b63d94549b90d484"},
		{"line count of what stays", `{"content":"a\nb","lineCount":9}`, `{"content":"a\nb","lineCount":9}`},
		{"image", `{"content":[{"type":"image","data":"` + longBase64 + `","mimeType":"image/png"}]}`,
			`{"content":[{"type":"image","data":"blob:sha256:9f167a0cd6a6c458fe987389ae9f7ade033e87b3cd888742573f527d1c5d3a29","mimeType":"image/png"}]}`},
		{"short image", `{"content":[{"type":"image","data":` + jsonString("A", 1023) + `}]}`, "aae0f6ec1e0e3e85"},
		{"long image", `{"content":[{"data":` + jsonString("QUJD", 130_000) + `,"type":"image"}]}`,
			`{"content":[{"data":"blob:sha256:f2475a153a06364af900491a64ea6f7a522007c5aac3173ce9f1566a097ea3f7","type":"image"}]}`},
		{"odd base64", `{"content":[{"data":"` + strings.Repeat("QU-_ ", 256) + `Q=AAAA","type":"image"}]}`,
			`{"content":[{"data":"blob:sha256:caaed0573fa2946b930d0d93ae3545e34a5243f76ab312c2f5165dcf9cfe4911","type":"image"}]}`},
		{"image elsewhere", `{"images":[{"type":"image","data":"` + longBase64 + `"}],"content":{"type":"image","data":"` + longBase64 + `"}}`,
			"3f61cd32a2989137"},
		{"image in an array in content", `{"content":[[{"type":"image","data":"` + longBase64 + `"}]]}`,
			`{"content":[[{"type":"image","data":"blob:sha256:9f167a0cd6a6c458fe987389ae9f7ade033e87b3cd888742573f527d1c5d3a29"}]]}`},
		{"image in a blob", `{"content":[{"type":"image","data":"blob:sha256:` + x(1100) + `"}]}`, "032a45277d52efb6"},
		{"image data no string", `{"content":[{"type":"image","data":["` + longBase64 + `"]}]}`, "aa689d33ac60172e"},
		{"image_url", `{"image_url":"data:image/png;base64,QUJD","x":{"image_url":"data:image/svg+xml;utf8;base64,QQ=="},` +
			`"y":{"image_url":"http://x"},"z":{"image_url":["data:image/png;base64,QUJE"]},"w":{"image_url":"data:text/plain;base64,QQ=="}}`,
			"081f8d7ff7eeee4d"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := Persist(rawjson.Value(test.give), PersistRules{Blobs: true})
			require.NoError(t, err)
			require.True(t, rawjson.IsValidObject(got.Text))
			if strings.HasPrefix(test.want, "{") {
				require.Equal(t, test.want, string(got.Text))
			} else {
				require.Equal(t, test.want, BlobName(got.Text)[:16])
			}
		})
	}
}

// TestPersistNewer compares with what omp 18.2.3 makes of 400 entries of random parts that the size controls look at. Each line of
// the file has the first 16 digits of the SHA-256 of the result, with the names and endings of its blobs, and the entry, in which
// <x*500001> is a text repeated.
func TestPersistNewer(t *testing.T) {
	sessiontest.NotUnderRace(t)
	recorded, err := os.ReadFile("testdata/persist-18.2.3.txt")
	require.NoError(t, err)
	require.Equal(t, 400, strings.Count(string(recorded), "\n"))
	repeated := regexp.MustCompile(`<(.+?)\*(\d+)>`)
	for line := range strings.Lines(string(recorded)) {
		want, give, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		entry := repeated.ReplaceAllStringFunc(give, func(run string) string {
			m := repeated.FindStringSubmatch(run)
			n, err := strconv.Atoi(m[2])
			require.NoError(t, err)
			return strings.Repeat(m[1], n)
		})
		got, err := Persist(rawjson.Value(entry), PersistRules{Blobs: true, Newer: true})
		require.NoError(t, err)
		text := string(got.Text)
		for _, b := range got.Blobs {
			text += " " + BlobName(b.Data) + "." + b.Ending
		}
		require.Equal(t, want, BlobName([]byte(text))[:16], "%s\nbecame %.2000s", give, got.Text)
	}
}

func TestPersistEdits(t *testing.T) {
	sessiontest.NotUnderRace(t)
	long := strings.Repeat("x", maxPersist+1)
	cut := strings.Repeat("x", maxPersist-noticeUnits) + truncationNotice
	tests := []struct{ name, give, want string }{
		{"blanks around what is dropped", `{ "partialJson" : 1 , "a" : 2 , "partialJson" : 3 }`, `{ "a" : 2 }`},
		{"all dropped", `{ "partialJson":1 , "jsonlEvents":2 }`, `{  }`},
		{"escaped key", `{"\u0070artialJson":1,"a":2}`, `{"a":2}`},
		{"not a key", `{"a":"partialJson","b":["partialJson"]}`, `{"a":"partialJson","b":["partialJson"]}`},
		{"pairs by escapes", `{"s":` + jsonString(`\ud83d\ude00`, 250_001) + `}`,
			`{"s":"` + strings.Repeat(`\ud83d\ude00`, (maxPersist-noticeUnits-1)/2) + truncationNotice + `"}`},
		{"ill-formed bytes count as one unit", `{"s":"` + strings.Repeat("\xff", maxPersist+1) + `"}`,
			`{"s":"` + strings.Repeat("�", maxPersist-noticeUnits) + truncationNotice + `"}`},
		{"the last of repeated keys counts", `{"content":"` + long + `","lineCount":7,"content":"a"}`, `{"content":"` + cut + `","lineCount":7,"content":"a"}`},
		{"long text beside an image", `{"content":[{"type":"image","data":"` + longBase64 + `","x":"` + long + `","partialJson":1}]}`,
			`{"content":[{"type":"image","data":"blob:sha256:9f167a0cd6a6c458fe987389ae9f7ade033e87b3cd888742573f527d1c5d3a29","x":"` + cut + `"}]}`},
		{"top level", `"` + long + `"`, `"` + cut + `"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := Persist(rawjson.Value(test.give), PersistRules{Blobs: true})
			require.NoError(t, err)
			require.Equal(t, test.want, string(got.Text))
		})
	}
}

func TestPersistDepth(t *testing.T) {
	nest := func(n int) rawjson.Value { return rawjson.Value(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	_, err := Persist(nest(maxDepth), PersistRules{Blobs: true})
	require.NoError(t, err)
	_, err = Persist(nest(maxDepth+1), PersistRules{Blobs: true})
	require.ErrorIs(t, err, sessioncore.ErrInvalid)
}

// FuzzPersist: the result is valid JSON of valid UTF-8, and a second time changes nothing.
func FuzzPersist(f *testing.F) {
	for _, seed := range []string{`{"partialJson":1}`, `{"a":[{"content":[{"type":"image","data":"` + longBase64 + `"}]}],"jsonlEvents":{}}`,
		`{"image_url":"data:image/;base64,"}`, `{ "a" : "\ud800" , "partialJson" : [ ] }`, "{\"\xff\":\"\xe2\x82\"}"} {
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
