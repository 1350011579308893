package message_test

import (
	"fmt"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/message"
)

// The members of a message are read in one pass. Those of its blocks have the same keys, however a client spells them.
func ExampleRead() {
	text := rawjson.Value(`{"role":"assistant","content":[{"type":"text","text":"I look."},` +
		`{"type":"toolCall","id":"c1","name":"read","arguments":{"path":"pond.txt"}}]}`)
	m := message.Read(text)
	fmt.Printf("%s %s\n", m.Role(), message.FirstText(m[message.Content]))
	message.EachCall(m[message.Content], func(call *message.Members) {
		fmt.Printf("%s %s\n", call[message.Name], call[message.Arguments])
	})
	// Output:
	// assistant "I look."
	// "read" {"path":"pond.txt"}
}
