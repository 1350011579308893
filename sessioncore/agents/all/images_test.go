package all

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/agents/agentstest"
)

// TestImagesOfAnswers: an image in an answer is a block of its entry, so that pages show it.
func TestImagesOfAnswers(t *testing.T) {
	const block = `{"type":"image","data":"iVBORw0K","mimeType":"image/png"}`
	const part = `{"text":"Here"},{"inlineData":{"mimeType":"image/png","data":"iVBORw0K"}}`
	const url = `"data:image/png;base64,iVBORw0K"`
	for agent, record := range map[string]string{
		"claude": `{"type":"assistant","uuid":"u","sessionId":"s","message":{"role":"assistant","content":[` +
			`{"type":"text","text":"Here"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0K"}}]}}`,
		"codex": `{"type":"response_item","payload":{"type":"message","role":"assistant","content":[` +
			`{"type":"output_text","text":"Here"},{"type":"input_image","image_url":` + url + `}]}}`,
		"gemini": `{"id":"g","type":"gemini","content":[` + part + `]}`,
		"kimi": `{"type":"context.append_loop_event","agentId":"main","time":1,"event":{"type":"content.part","stepUuid":"s",` +
			`"part":{"type":"image_url","image_url":{"url":` + url + `}}}}` + "\n" +
			`{"type":"context.append_loop_event","agentId":"main","time":1,"event":{"type":"content.part","stepUuid":"s","part":{"type":"text","text":"Here"}}}`,
		"opencode": `{"session":{"id":"ses_s","directory":"/w"}}` + "\n" + `{"id":"msg_1","info":{"role":"assistant","modelID":"m"},"parts":[` +
			`{"id":"prt_1","data":{"type":"text","text":"Here"}},{"id":"prt_2","data":{"type":"file","mime":"image/png","url":` + url + `}}]}`,
		"qwen": `{"uuid":"u","sessionId":"s","type":"assistant","message":{"role":"model","parts":[` + part + `]}}`,
	} {
		newConverter := converters(t, []byte(record))[agent]
		whole, _ := agentstest.Convert(t, newConverter(), record+"\n")
		require.Contains(t, whole, `"role":"assistant"`, agent)
		require.Contains(t, whole, "Here", agent)
		require.Contains(t, whole, block, agent)
	}
}
