package writer

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/internal/sessiontest"
)

// entryMaker makes random entries of the things that the size controls look at.
type entryMaker struct {
	r *rand.Rand
	n int // strings that may still be long
}

func (m *entryMaker) pick(of ...string) string { return of[m.r.IntN(len(of))] }

func (m *entryMaker) str() string {
	switch k := m.r.IntN(20); {
	case k == 0 && m.n > 0:
		m.n--
		return jsonString(m.pick("x", `\n`, "yz", `a\n`), 500_001-m.r.IntN(3))
	case k == 1:
		return jsonString("QUJD", 254+m.r.IntN(4))
	case k == 2:
		return `""`
	case k == 3:
		return `"blob:sha256:` + strings.Repeat("x", 1100*m.r.IntN(2)) + `"`
	case k == 4:
		return `"data:image/png;base64,QUJD"`
	case k == 5:
		return `"` + m.pick("enc", "rs_1") + `"`
	}
	return `"` + m.pick(`a\nb`, "web_search", "x", "image/PNG", "image/svg+xml", "text/plain") + `"`
}

func (m *entryMaker) value(depth int) string {
	switch k := m.r.IntN(10); {
	case k < 4 || depth == 0:
		return m.str()
	case k == 4:
		return m.pick("1", "7", "null", "true")
	case k < 7:
		var list []string
		for range m.r.IntN(4) {
			list = append(list, m.value(depth-1))
		}
		return "[" + strings.Join(list, ",") + "]"
	}
	return m.object(depth - 1)
}

// keysOf are members that count in an object of a type.
var keysOf = map[string][]string{
	"thinking": {"thinking", "thinkingSignature"}, "text": {"text", "textSignature"}, "toolCall": {"arguments", "thoughtSignature", "partialJson"},
	"redactedThinking": {"data"}, "reasoning": {"encrypted_content", "summary", "id"}, "image": {"data", "mimeType", "note"},
	"image_generation_call": {"result", "prompt"}, "anthropicServerTool": {"block", "note"}, "anthropicCompaction": {"content", "encrypted_content"},
	"server_tool_use": {"name", "id", "input"}, "web_search_tool_result": {"tool_use_id", "content"}, "other": {"thinkingSignature", "frames", "images"},
}

var commonKeys = []string{"content", "lineCount", "jsonlEvents", "partialJson", "image_url", "images", "frames", "data", "mimeType", "block",
	"anthropicCompaction", "details"}

func (m *entryMaker) object(depth int) string {
	types := []string{"thinking", "text", "toolCall", "redactedThinking", "reasoning", "image", "image_generation_call", "anthropicServerTool",
		"anthropicCompaction", "server_tool_use", "web_search_tool_result", "other"}
	typ := m.pick(types...)
	keys := append([]string{}, commonKeys...)
	m.r.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	keys = keys[:m.r.IntN(5)]
	for _, key := range append([]string{"type"}, keysOf[typ]...) {
		if m.r.IntN(5) > 0 {
			keys = append(keys, key)
		}
	}
	m.r.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	seen := map[string]bool{}
	var members []string
	for _, key := range keys {
		if seen[key] {
			continue
		}
		seen[key] = true
		value := ""
		switch {
		case key == "type":
			value = `"` + typ + `"`
		case key == "mimeType":
			value = m.str()
		case (key == "data" || key == "result") && m.r.IntN(2) == 0:
			value = jsonString("QUJD", 254+m.r.IntN(4))
		case key == "lineCount":
			value = m.pick("3", "9", `"4"`)
		case key == "block" && m.r.IntN(2) == 0:
			value = m.pick(`{"type":"server_tool_use","name":"web_search","id":"a","x":`, `{"type":"web_search_tool_result","tool_use_id":"a","content":`,
				`{"type":"server_tool_use","name":"other","id":"a","x":`) + m.str() + "}"
		case m.r.IntN(3) > 0:
			value = m.str()
		default:
			value = m.value(depth)
		}
		members = append(members, `"`+key+`":`+value)
	}
	return "{" + strings.Join(members, ",") + "}"
}

// entry makes an entry: half of them are answers that may carry their provider's history.
func (m *entryMaker) entry() string {
	m.n = 1
	if m.r.IntN(2) == 0 {
		return `{"type":"custom","data":` + m.object(4) + `}`
	}
	signature := func() string {
		return m.pick(`"{\"type\":\"reasoning\",\"encrypted_content\":\"enc\"}"`, `"{\"type\":\"reasoning\",\"id\":\"rs_1\"}"`,
			`"{\"type\":\"reasoning\",\"encrypted_content\":\"other\",\"id\":\"rs_1\"}"`,
			`"{}"`, `"no JSON"`, `" {\"type\":\"reasoning\",\"id\":\"rs_1\"} "`)
	}
	var blocks []string
	for range 1 + m.r.IntN(4) {
		if m.r.IntN(2) == 0 {
			blocks = append(blocks, `{"type":"thinking","thinking":`+m.str()+`,"thinkingSignature":`+signature()+`}`)
		} else {
			blocks = append(blocks, m.object(3))
		}
	}
	payload := ""
	if m.r.IntN(3) > 0 {
		payload = `,"providerPayload":{"type":"` + m.pick("openaiResponsesHistory", "openaiResponsesHistory", "other") + `","items":[` +
			m.pick(`{"type":"reasoning","encrypted_content":"enc","id":"rs_1"}`, `{"type":"reasoning","id":"rs_1"}`, m.object(2), `null`) + `]}`
	}
	return `{"type":"message","message":{"role":"assistant","content":[` + strings.Join(blocks, ",") + `]` + payload + `}}`
}

// recordEnv names a file to which TestPersistNewer writes its entries, so that another version of the client can be asked.
const recordEnv = "SESSIONFS_TEST_ENTRIES"

// TestPersistNewer compares with what omp 18.2.3 makes of the same entries: testdata/persist-18.2.3.txt has the first 16
// digits of the SHA-256 of each result with the names and endings of its blobs.
func TestPersistNewer(t *testing.T) {
	if sessiontest.UnderRace {
		t.Skip("one goroutine, and much text")
	}
	recorded, err := os.ReadFile("testdata/persist-18.2.3.txt")
	require.NoError(t, err)
	want := strings.Fields(string(recorded))
	m := entryMaker{r: rand.New(rand.NewPCG(18, 13))}
	var all strings.Builder
	for i := range 400 {
		give := m.entry()
		fmt.Fprintln(&all, give)
		if i >= len(want) {
			continue
		}
		got, err := Persist(rawjson.Value(give), PersistRules{Blobs: true, Newer: true})
		require.NoError(t, err)
		text := string(got.Text)
		for _, b := range got.Blobs {
			text += " " + BlobName(b.Data) + "." + b.Ending
		}
		sum := sha256.Sum256([]byte(text))
		require.Equal(t, want[i], hex.EncodeToString(sum[:8]), "entry %d: %.2000s\nbecame %.2000s", i, give, got.Text)
	}
	if file := os.Getenv(recordEnv); file != "" {
		require.NoError(t, os.WriteFile(file, []byte(all.String()), 0o644))
		return
	}
	require.Len(t, want, 400)
}
