package nodes

import "sessionfs/sessioncore"

// renderTitle makes title: the session's title and a newline, nothing where it has none.
func renderTitle(_ *View, snap *sessioncore.Snapshot) (*sessioncore.Document, error) {
	return snap.TitleDocument()
}
