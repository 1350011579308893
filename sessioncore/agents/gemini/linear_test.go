package gemini

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/agents/agentstest"
	"sessionfs/sessioncore/internal/sessiontest"
)

// TestNestedContent: content is a text, an object, or a list of both. Deeper lists are no parts, and
// cost one look at them.
func TestNestedContent(t *testing.T) {
	converter := func() *agents.Builder { return newHome(nil).Converter(agents.About{ID: "s"}, nil) }
	nested := func(text string, n int) string { return strings.Repeat("[", n) + text + strings.Repeat("]", n) }
	for name, record := range map[string]string{
		"content":   `{"id":"u","type":"user","content":%s}`,
		"display":   `{"id":"u","type":"user","content":"x","displayContent":%s}`,
		"answer":    `{"id":"a","type":"gemini","content":%s}`,
		"thoughts":  `{"id":"a","type":"gemini","content":"x","thoughts":%s}`,
		"calls":     `{"id":"a","type":"gemini","content":"x","toolCalls":%s}`,
		"result":    `{"id":"a","type":"gemini","content":"x","toolCalls":[{"id":"c","result":%s}]}`,
		"parts":     `{"id":"u","type":"user","content":[{"functionResponse":{"id":"c","parts":%s}}]}`,
		"response":  `{"id":"u","type":"user","content":[{"functionResponse":{"id":"c","response":%s}}]}`,
		"error":     `{"id":"u","type":"error","content":%s}`,
		"messages":  `{"sessionId":"s","messages":%s}`,
		"set":       `{"$set":{"messages":%s}}`,
		"in set":    `{"$set":{"messages":[{"id":"u","type":"user","content":%s}]}}`,
		"signature": `{"id":"a","type":"gemini","content":[{"thought":true,"text":"x","thoughtSignature":%s}]}`,
	} {
		sessiontest.Linear(t, 2000, func(n int) int64 {
			text := header + fmt.Sprintf(record, nested(`"deep"`, n)) + "\n"
			return agentstest.ConvertWork(t, converter, text).Scanned
		})
		whole, _ := agentstest.Convert(t, converter(), header+fmt.Sprintf(record, nested(`"deep"`, 2))+"\n")
		if name != "response" && name != "signature" {
			require.NotContains(t, whole, "deep", name)
		}
	}
}
