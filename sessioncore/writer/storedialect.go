package writer

import (
	"path/filepath"
	"slices"
	"strings"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// operatorDir is what operator's directory is called in a home: ~/.operator/profiles/<name>.
const operatorDir = ".operator"

// storeDialect returns the dialect that new sessions of the store are of, and how they write times.
// operator's sessions of all working directories lie side by side (docs/format.md, Operator dialect), so
// that of the files there which are sessions the one with the latest name tells. Where there is nothing
// yet, the store's own path does.
func (w *Writer) storeDialect() (d *sessioncore.Dialect, form rawjson.TimeForm, err error) {
	items, err := w.store.Storage().List("")
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
		header, err := sessioncore.ReadHeaderOf(w.store.Storage(), item.Name)
		if err != nil || header == nil {
			continue // no session, gone, or not ours to read
		}
		d := sessioncore.DialectOf(header)
		_, form, ok := d.Time(header.Member("timestamp"))
		if !ok {
			form = d.Form
		}
		return d, form, nil
	}
	if empty && slices.Contains(strings.Split(filepath.ToSlash(w.opts.Root), "/"), operatorDir) {
		return sessioncore.Operator, sessioncore.Operator.Form, nil
	}
	return sessioncore.OMP, sessioncore.OMP.Form, nil
}
