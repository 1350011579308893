package nodes

import "sessionfs/sessioncore"

// renderUsage makes usage.json: what the session and its current branch cost in tokens and money.
func renderUsage(_ *View, snap *sessioncore.Snapshot) (*sessioncore.Document, error) {
	leaf, err := snap.Leaf()
	if err != nil {
		return nil, err
	}
	return snap.UsageDocument(leaf)
}
