package nodes

import (
	"context"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/report"
)

// renderSecrets renders secrets.jsonl: where keys and tokens are in the session.
func renderSecrets(ctx context.Context, _ *View, snap *sessioncore.Snapshot) (*document.Document, error) {
	return report.Secrets(ctx, snap)
}

// showsSecrets reports whether there is a secrets.jsonl. Where secrets are masked it could only say that there are none.
func (d *SessionDir) showsSecrets(context.Context) (bool, error) { return !d.view.Redacted, nil }
