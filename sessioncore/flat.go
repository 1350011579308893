package sessioncore

import (
	"path/filepath"
	"slices"
	"strings"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// operatorDir is what operator's directory is called in a home: ~/.operator/profiles/<name>.
const operatorDir = ".operator"

// storeDialect returns the dialect that new sessions of the store are of, and how they write times.
// operator's sessions of all working directories lie side by side (docs/format.md, Operator dialect), so
// that of the files there which are sessions the one with the latest name tells. Where there is nothing
// yet, the store's own path does.
func (w *Writer) storeDialect() (d *dialect, form rawjson.TimeForm, err error) {
	items, err := w.store.Storage().List("")
	if err != nil && !storage.IsMissing(err) {
		return nil, 0, err
	}
	empty := true
	for _, item := range slices.Backward(items) { // names begin with the time
		if item.Kind == storage.KindDir {
			empty = false
		}
		if item.Kind != storage.KindFile || !isSessionName(item.Name) {
			continue
		}
		header, err := readHeaderOf(w.store.Storage(), item.Name)
		if err != nil || header == nil {
			continue // no session, gone, or not ours to read
		}
		d := dialectOf(header)
		_, form, ok := d.time(header.Member("timestamp"))
		if !ok {
			form = d.form
		}
		return d, form, nil
	}
	if empty && slices.Contains(strings.Split(filepath.ToSlash(w.opts.Root), "/"), operatorDir) {
		return operator, operator.form, nil
	}
	return omp, omp.form, nil
}
