package nodes

import (
	"context"

	fusefs "github.com/hanwen/go-fuse/v2/fs"

	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/writer"
)

// makeAppend makes append: entries are written to it, a JSON object a line. Half an object, whose line may go on
// through another descriptor, is not carried out when one is closed.
func makeAppend(d *SessionDir) fusefs.InodeEmbedder {
	f := d.control("append", d.appendLines, nil)
	f.part = writer.Unfinished
	return f
}

// appendLines appends entries. Reading the same open file gives their ids, a line each; see answers.
func (d *SessionDir) appendLines(ctx context.Context, lines [][]byte) ([]string, int, error) {
	ids, err := d.view.Writer.Append(ctx, d.session, lines...)
	done := len(ids)
	for i, id := range ids {
		ids[i] = names.TextUTF8(id)
	}
	if done == len(lines) && err != nil {
		done = 0 // all are written, but not durable: the writer must be told
	}
	return ids, done, err
}
