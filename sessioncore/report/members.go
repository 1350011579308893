package report

import (
	"sessionfs/sessioncore/internal/rawjson"
)

// ofUsage returns an object with the members of a message that say what it cost and who answered. Most of a message is
// text, and each look at one of its members goes through all of that.
func ofUsage(message rawjson.Value) rawjson.Value {
	short := []byte{'{'}
	message.EachMember(func(m rawjson.Member) bool {
		switch m.Name() {
		case "role", "provider", "model", "usage", "toolName", "details":
			if len(short) > 1 {
				short = append(short, ',')
			}
			short = append(append(append(short, m.Key...), ':'), m.Value...)
		}
		return true
	})
	return append(short, '}')
}
