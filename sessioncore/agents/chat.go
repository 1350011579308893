package agents

import (
	"strings"

	"sessionfs/sessioncore/internal/rawjson"
)

// Chat adds a message in the form of OpenAI's chat completions, which has no times and no ids. Other roles than user,
// assistant and tool are ignored. typed returns the part of a text that the person typed.
func (b *Builder) Chat(m Object, typed func(text string) string) {
	content := m.Member("content")
	text := ChatText(content)
	role := m.Member("role")
	switch {
	case role.Is("user"):
		prompt := typed(text)
		b.Prompted(prompt)
		b.User(chatBlocks(prompt, content))
	case role.Is("assistant"):
		b.Close() // all answers have the key ""
		answer := b.Answer("")
		answer.Text(Quoted(text))
		for call := range m.Member("tool_calls").EachElement {
			function := Read(call.Member("function"))
			answer.Call(call.Member("id"), function.Member("name"), function.Member("arguments"))
		}
	case role.Is("tool"):
		b.Result(ToolResult{
			Call:    m.Member("tool_call_id"),
			Content: chatBlocks(text, content),
		})
	}
}

// ChatText returns the text of the content of a chat message: a string, or the texts of its parts. It is "" for others.
func ChatText(content rawjson.Value) string {
	if !content.IsArray() {
		text, _ := content.Text()
		return text
	}
	var all strings.Builder
	for part := range content.EachElement {
		text, _ := part.Member("text").Text()
		all.WriteString(text)
	}
	return all.String()
}

// chatBlocks returns blocks of a text and of the images in content.
func chatBlocks(text string, content rawjson.Value) (blocks Blocks) {
	blocks.Text(Quoted(text))
	for part := range content.EachElement {
		blocks.ImageURL(part.Member("image_url").Member("url"))
	}
	return blocks
}
