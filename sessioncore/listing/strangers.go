package listing

import "slices"

// OnStrangers sets the functions for files with the name of a session that no known agent wrote:
// is tells them among the files that are not listed, and report gets their names when they changed.
// It must be called before l is used. Both are called with l locked, is concurrently.
func (l *Listing) OnStrangers(is func(name string) bool, report func(names []string)) {
	l.isStranger = is
	l.onStrangers = report
}

// Strangers returns the names of those files in the last scan, in order. Callers must not modify
// the slice.
func (l *Listing) Strangers() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.strangers
}

// isStranger reports whether no known agent wrote the file.
func (f *sessionFile) isStranger() bool {
	return f.info == nil && f.unlisted != nil && f.unlisted.isStranger
}

// reportStrangers updates the strangers after a scan. Callers must hold l.mu.
func (l *Listing) reportStrangers() {
	var now []string
	for _, dir := range l.dirs {
		for _, f := range dir.files {
			if f.isStranger() {
				now = append(now, f.name)
			}
		}
	}
	slices.Sort(now)
	if slices.Equal(now, l.strangers) {
		return
	}
	l.strangers = now
	if l.onStrangers != nil {
		l.onStrangers(now)
	}
}
