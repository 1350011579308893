// Package message reads the facts about messages, about entries like messages, and about content
// blocks that people, searches and bills need, in the spelling of every dialect and provider.
//
//	m := message.Read(snapshot.Message(entry, text))
//	if m.Role() == "assistant" { … m[message.Content] … }
//
// It holds no state and knows no session.
package message
