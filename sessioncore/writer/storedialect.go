package writer

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/program"
	"sessionfs/sessioncore/storage"
)

// operatorDir is the name of operator's directory in a home directory: ~/.operator/profiles/<name>.
const operatorDir = ".operator"

// storeDialect returns the dialect of new sessions of the store, and the form of their times. operator's sessions of
// all working directories are in one directory (docs/format.md, Operator dialect), so that the session with the
// latest name there decides. If the store is empty, its path decides. Whether it is pi's, the agent directory says.
func (w *Writer) storeDialect(ctx context.Context) (d *sessioncore.Dialect, form rawjson.TimeForm, err error) {
	whose := program.OfSession(w.store.Program(), 0)
	items, err := storage.List(w.store.Storage(), "")
	if err != nil && !storage.IsMissing(err) {
		return nil, 0, err
	}
	empty := true
	for _, item := range slices.Backward(items) { // names begin with the time
		if item.Kind == storage.KindDir {
			empty = false
		}
		if item.Kind != storage.KindFile || !sessioncore.IsSessionName(item.Name) {
			continue
		}
		header, err := sessioncore.ReadHeaderOf(ctx, w.store.Storage(), item.Name)
		if err != nil || header == nil {
			continue // not a session, gone, or not readable
		}
		d := sessioncore.DialectOf(header).OfProgram(whose)
		_, form, ok := d.Time(header.Member("timestamp"))
		if !ok {
			form = d.Form
		}
		return d, form, nil
	}
	if empty && slices.Contains(strings.Split(filepath.ToSlash(w.opts.Root), "/"), operatorDir) {
		return sessioncore.Operator, sessioncore.Operator.Form, nil
	}
	d = sessioncore.OMP.OfProgram(whose)
	return d, d.Form, nil
}
