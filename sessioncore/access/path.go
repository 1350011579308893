package access

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"sessionfs/sessioncore/storage"
)

// May returns the file or directory at an absolute path if the caller has all of the rights on it, and may search every
// directory above it. The result tells which file it was, so that callers can compare it with the one that they have
// open. The error wraps fs.ErrPermission, or fs.ErrNotExist. A nil caller is not asked.
func (c *Caller) May(name string, want Rights) (storage.Token, error) {
	var found storage.Token
	if c == nil {
		return found, nil
	}
	err := walk(name, func(at string, o *object, id storage.Token, last bool) error {
		needs := Search
		if last {
			needs, found = want, id
		}
		if !o.may(c, needs) {
			return c.denied(needs, at)
		}
		return nil
	})
	return found, err
}

// MayMake reports whether the caller may make files in a directory, or, if that is not there yet, in the one above it
// that is.
func (c *Caller) MayMake(dir string) error {
	if c == nil {
		return nil
	}
	for {
		_, err := c.May(dir, Write|Search)
		if !errors.Is(err, fs.ErrNotExist) || dir == "/" {
			return err
		}
		dir = path.Dir(dir)
	}
}

// MayAs is May for a file that is not on disk, but would be at that path with the mode and owner of st.
func (c *Caller) MayAs(name string, st storage.Stat, want Rights) error {
	if c == nil {
		return nil
	}
	dir := name
	for {
		dir = path.Dir(dir)
		_, err := c.May(dir, Search)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) || dir == "/" {
			return err
		}
	}
	if o := (object{mode: st.Mode, uid: st.UID, gid: st.GID}); !o.may(c, want) {
		return c.denied(want, name)
	}
	return nil
}

// Grants reports whether the mode and the owner alone give the caller all of the rights.
func (c *Caller) Grants(mode, uid, gid uint32, want Rights) bool {
	o := object{mode: mode, uid: uid, gid: gid}
	return o.may(c, want)
}

// denied names the last part of the path only: who reads the reason may not be the one who may see the path.
func (c *Caller) denied(want Rights, name string) error {
	var what []string
	for _, r := range []struct {
		right Rights
		verb  string
	}{{Read, "read"}, {Write, "write"}, {Search, "search"}} {
		if want&r.right != 0 {
			what = append(what, r.verb)
		}
	}
	return fmt.Errorf("%w: user %d may not %s %q", fs.ErrPermission, c.UID, strings.Join(what, " and "), path.Base(name))
}

// Plain reports whether modes tell everything about a path to those who can see them from the directory shown on, which
// is the path or above it: there are no access control lists, and everybody may search what is above shown.
func Plain(name, shown string) bool {
	err := walk(name, func(at string, o *object, _ storage.Token, _ bool) error {
		isShown := at == shown || strings.HasPrefix(at, shown+"/")
		if o.acl != nil || !isShown && o.mode&0o111 != 0o111 {
			return fs.ErrPermission
		}
		return nil
	})
	return err == nil
}
