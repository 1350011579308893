package mountopts

import (
	"errors"
	"log/slog"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// FSType is the type of our mounts in the mount table.
const FSType = "fuse." + Subtype

// Subtype is the part of FSType that FUSE file systems choose themselves.
const Subtype = "sessionfs"

// Options are the options of a mount. The zero value of each field is its default.
type Options struct {
	// Source is the agent directory, or the URL of a database (IsDatabase). Parse leaves it as
	// given, or empty; the command makes a directory absolute and resolves its symlinks before it
	// mounts.
	Source string
	// SourceAs is the absolute path of Source as it was given, with the links in it: the client may
	// know it by that; set by the command, empty for Source.
	SourceAs string
	// Agents are the agent directories where Source is All; set by the command.
	Agents []AgentDir
	// LeftOut says which agents cannot be opened where Source is All, and why; set by the command.
	LeftOut []string
	// State is the directory that holds terminal-sessions/; empty means Source.
	State string
	// Blobs is the directory of the blobs where Source is a database; empty means none.
	Blobs string
	// Empty takes a place in a database where no sessions are, to put some there; set by the
	// command.
	Empty bool
	// Mountpoint is where it is mounted; as with Source, absolute and resolved at the mount.
	Mountpoint string
	// FSName is the source that the mount table shows; empty means Source. Read it through
	// TableSource.
	FSName string
	// Demo serves the built-in sample store instead of Source.
	Demo bool
	// Foreground runs the server in the foreground and logs to stderr.
	Foreground bool
	// NonEmpty allows a Mountpoint that is not empty.
	NonEmpty bool
	// AllowRoot lets root in too.
	AllowRoot bool
	// Redact shows sessions with the secrets in them masked. It implies ReadOnly.
	Redact bool
	// RedactRules is the file of further rules for secrets, in the format of gitleaks; empty means
	// none. It implies Redact.
	RedactRules string
	// ReadOnly refuses every write with EROFS.
	ReadOnly bool
	// Sync makes every line that is written durable before the write returns.
	Sync bool
	// LiveAllow writes to a session also while a live client holds it open (live=allow).
	LiveAllow bool
	// LeafMemory keeps moves of the leaf in memory only (leaf=memory).
	LeafMemory bool
	// ContextBlobsRef leaves blob references in context.json as they are (context-blobs=ref).
	ContextBlobsRef bool
	// Shared and NotShared say whether other machines may write to Source. Without either the type
	// of its file system tells.
	Shared, NotShared bool
	// Memory is how much memory the daemon may take beyond its index of the sessions, in bytes; 0
	// means the default.
	Memory int64
	// Prices is a file of prices for answers whose client recorded no cost. Empty stands for the
	// list prices that come along, and NoPrices for none.
	Prices string
	// Debug logs at debug level, every request too.
	Debug bool
	// LogLevel is from which level on is logged without Debug.
	LogLevel slog.Level
	// LogFile is where the log goes instead of stderr or syslog; empty for those.
	LogFile string
	// Idle is after how long without a request the mount ends, if nothing in it is open; 0 means
	// never.
	Idle time.Duration
	// NoExec says that no program in the mount can be run.
	NoExec bool
}

// AgentDir is an agent directory of several.
type AgentDir struct {
	// Name is that of the directory of its sessions.
	Name string
	// Source, SourceAs and State are those of Options.
	Source, SourceAs, State string
}

// For returns the options for one of the agents.
func (o Options) For(a AgentDir) Options {
	o.Source, o.SourceAs, o.State, o.Agents = a.Source, a.SourceAs, a.State, nil
	return o
}

// TableSource returns the source of the mount for the mount table.
func (o Options) TableSource() string {
	if o.FSName != "" {
		return o.FSName
	}
	return o.Source
}

// Level returns from which level on is logged.
func (o Options) Level() slog.Level {
	if o.Debug {
		return slog.LevelDebug
	}
	return o.LogLevel
}

// IsDatabase reports whether SOURCE is the URL of a database, or certainly meant for one:
// CheckSource tells. A directory of such a name is given as ./postgres:...
func IsDatabase(source string) bool {
	return isURL.MatchString(source) || isKeywords.MatchString(source)
}

var (
	isURL      = regexp.MustCompile(`(?i)^\s*([a-z][a-z0-9+.:-]*://|postgres(ql)?:)`)
	isKeywords = regexp.MustCompile(`(?i)(^\s*(host|hostaddr|port|dbname|user|service|passfile|sslmode)|(^|\s)(ssl)?password)\s*=`)
	isPostgres = regexp.MustCompile(`(?i)^postgres(ql)?://`)
	// passwords are those of URLs and of keywords.
	passwords = regexp.MustCompile(`(?i)(postgres(?:ql)?:/*[^\s/:@]*:)[^\s@]+@|(\b(?:ssl)?password\s*=\s*)('[^']*'?|[^\s&'"]+)`)
)

// WithoutPassword masks text in a message that may be the password of a database.
func WithoutPassword(text string) string { return passwords.ReplaceAllString(text, "$1$2…") }

// NoPrices is the value of Prices that leaves answers without a recorded cost as they are. A file
// of that name is given as ./none.
const NoPrices = "none"

// All is the SOURCE that stands for every agent of the user. A directory of that name is given as
// ./--all.
const All = "--all"

// CheckSource refuses options that this kind of SOURCE does not allow. No error has a URL with a
// password.
func (o Options) CheckSource() error {
	if !IsDatabase(o.Source) {
		if o.Blobs != "" {
			return errors.New("-o blobs= is for a database as SOURCE: an agent directory has its own blobs")
		}
		return nil
	}
	const form = "postgres://USER@HOST/DATABASE?table=TABLE"
	if !isURL.MatchString(o.Source) {
		return errors.New("SOURCE has the keywords of a connection string; write them as a URL, without a password: " + form + ", or postgres://?service=NAME")
	}
	u, err := url.Parse(o.Source)
	switch {
	case !isPostgres.MatchString(o.Source):
		return errors.New("SOURCE is a URL, but not one of a database that can be mounted: " + form)
	case err != nil || u.Fragment != "" || strings.Contains(u.EscapedPath(), "@"): // a password may be cut in two
		return errors.New("SOURCE begins like the URL of a database, but is none: " + form)
	}
	_, secret := u.User.Password()
	for name := range u.Query() {
		secret = secret || strings.HasSuffix(strings.ToLower(name), "password")
	}
	if secret {
		return errors.New("SOURCE has a password, which every user of this machine can see in the list of processes: " +
			"leave it out, and put it into ~/.pgpass, PGPASSWORD or a service file")
	}
	return nil
}
