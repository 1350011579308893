// Package message reads the facts about messages, about entries like messages, and about content
// blocks that people, searches and bills need, in the spelling of every dialect and provider.
//
// [Read] has an example. The package holds no state and knows no session.
package message
