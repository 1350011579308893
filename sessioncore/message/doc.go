// Package message reads what a person, a search and a bill need of messages, of entries that are like one, and of the
// blocks in their content, in the spelling of every dialect and provider.
//
//	m := message.Read(snapshot.Message(entry, text))
//	if m.Role() == "assistant" { … m[message.Content] … }
//
// It holds nothing and knows no session.
package message
