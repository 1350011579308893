package program

import (
	"sync"
	"time"

	"sessionfs/sessioncore/storage"
)

// Root is an agent directory. Its files are looked at again only when names in it changed. It is safe for concurrent
// use.
type Root struct {
	files storage.Files
	paths []string

	mu     sync.Mutex // guards the fields below; held while names are looked at
	stat   storage.Stat
	lookAt int64 // when stat was taken, ns since the epoch; 0 for never
	found  Program
}

// NewRoot returns the agent directory files, which has these paths.
func NewRoot(files storage.Files, paths ...string) *Root { return &Root{files: files, paths: paths} }

// Program returns OfRoot of the directory as it is now.
func (r *Root) Program() Program {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now().UnixNano()
	st, err := r.files.Stat("")
	if err != nil {
		return r.found
	}
	if r.lookAt == 0 || st.Token != r.stat.Token || r.stat.Racy(r.lookAt) {
		r.found, r.stat, r.lookAt = OfRoot(r.files, r.paths...), st, now
	}
	return r.found
}
