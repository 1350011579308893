package nodes

import (
	"context"
	"strings"

	"sessionfs/nodes/layout"
	"sessionfs/sessioncore/storage"
)

// What a directory below sessions/ knows of what was copied into it.

// wasMade reports whether a name of the storage was copied in.
func (d *SourceDir) wasMade(name string) bool {
	st, err := d.storage.Stat(name)
	if err != nil {
		return false
	}
	_, ok := d.view.copies.findMade(name, st.Token)
	return ok
}

// isOfCopy reports whether the directory lies in one that was copied in, or beside a session that was: artifacts are
// copied there, and nowhere else.
func (d *SourceDir) isOfCopy() bool {
	for dir := d.dir; dir != ""; dir = storage.Dir(dir) {
		if d.wasMade(dir) || d.wasMade(dir+layout.SessionSuffix) {
			return true
		}
	}
	return false
}

// isBeingMade reports whether a lookup of the directory that shows a session is that of the thread that has copied the
// session, and is about to make the directory beside it.
func (d *SourceDir) isBeingMade(ctx context.Context, name string) bool {
	return d.hasCopied(ctx, name) && isMakingDir(ctx)
}

// hasCopied reports whether the thread that makes a request has copied in the session of a name.
func (d *SourceDir) hasCopied(ctx context.Context, name string) bool {
	d.view.copies.madeMu.Lock()
	m, ok := d.view.copies.made[join(d.dir, name+layout.SessionSuffix)]
	d.view.copies.madeMu.Unlock()
	return ok && m.thread != 0 && m.thread == threadOf(ctx)
}

// removeMade removes an artifact or an empty directory that was copied in. It reports whether the name is one.
func (d *SourceDir) removeMade(ctx context.Context, name string, dir bool) (bool, error) {
	at := join(d.dir, name)
	st, err := d.storage.Stat(at)
	if err != nil || !d.takesCopies() {
		return false, nil
	}
	m, ok := d.view.copies.findMade(at, st.Token)
	isDir := st.Kind == storage.KindDir
	if !ok || isDir != dir || !isDir && (m.kind != layout.CopiedArtifact || m.grown || strings.HasSuffix(name, layout.SessionSuffix)) {
		return false, nil
	}
	if !isDir && m.token != st.Token {
		return false, nil
	}
	if err := d.view.Writer.Remove(d.view.Access.forCaller(uninterrupted(ctx)), at, st.Token); err != nil {
		return true, err
	}
	d.view.copies.forgetMade(at)
	return true, nil
}
