package mountopts

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"slices"
	"strconv"
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
	// Prices is a file of prices for answers without a recorded cost. Empty stands for the
	// list prices that come along, and NoPrices for none.
	Prices string
	// NoCache reads all sessions for a bill, and keeps nothing of them (cache=none).
	NoCache bool
	// Debug logs at debug level, every request too.
	Debug bool
	// LogLevel is the lowest level that is logged without Debug.
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
	// Name is the name of the directory of its sessions.
	Name string
	// Source, SourceAs and State are as in Options.
	Source, SourceAs, State string
}

// For returns the options for one of the agents.
func (o Options) For(a AgentDir) Options {
	o.Source = a.Source
	o.SourceAs = a.SourceAs
	o.State = a.State
	o.Agents = nil
	return o
}

// TableSource returns the source of the mount for the mount table.
func (o Options) TableSource() string {
	if o.FSName != "" {
		return o.FSName
	}
	return o.Source
}

// Level returns the lowest level that is logged.
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
	// passwords matches the passwords of URLs and of keywords.
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
	if IsDatabase(o.Source) {
		return checkDatabase(o.Source)
	}
	if o.Blobs != "" {
		return errors.New("-o blobs= is for a database as SOURCE: an agent directory has its own blobs")
	}
	return nil
}

// checkDatabase refuses the SOURCE of a database that is no URL of one, or has a password.
func checkDatabase(source string) error {
	const form = "postgres://USER@HOST/DATABASE?table=TABLE"
	if !isURL.MatchString(source) {
		return errors.New("SOURCE has the keywords of a connection string; write them as a URL, without a password: " + form + ", or postgres://?service=NAME")
	}
	if !isPostgres.MatchString(source) {
		return errors.New("SOURCE is a URL, but not one of a database that can be mounted: " + form)
	}
	errNoURL := errors.New("SOURCE begins like the URL of a database, but is none: " + form)
	u, err := url.Parse(source)
	if err != nil {
		return errNoURL
	}
	isCut := u.Fragment != "" || strings.Contains(u.EscapedPath(), "@") // in two, within a password
	if isCut {
		return errNoURL
	}
	if hasPassword(u) {
		return errors.New("SOURCE has a password, which every user of this machine can see in the list of processes: " +
			"leave it out, and put it into ~/.pgpass, PGPASSWORD or a service file")
	}
	return nil
}

// hasPassword reports whether a URL has a password, as a part of the user or among the parameters.
func hasPassword(u *url.URL) bool {
	_, ofUser := u.User.Password()
	if ofUser {
		return true
	}
	for name := range u.Query() {
		if strings.HasSuffix(strings.ToLower(name), "password") {
			return true
		}
	}
	return false
}

// option is one option of -o that has an effect.
type option struct {
	name  string
	value string // placeholder of the value in the help; empty if it takes none
	help  string
	set   func(value string) error
}

// options are the options of -o that have an effect, in the order of the help. The parser, the help
// and the test of the manual are made from them. They set fields of o.
func options(o *Options) []option {
	return []option{
		{"ro", "", "read-only: every write fails with EROFS", setting(&o.ReadOnly, true)},
		{"rw", "", "writable (default)", setting(&o.ReadOnly, false)},
		{"redact", "", "mask keys, tokens and passwords; implies ro", setting(&o.Redact, true)},
		{"redact-rules", "FILE", "redact, with more rules (gitleaks' format)", o.setRules},
		{"sync", "", "make every line that is written durable at once", setting(&o.Sync, true)},
		{"async", "", "durable at fsync (default)", setting(&o.Sync, false)},
		{"live", "refuse|allow", "writes to a session that a live client has open", choice("refuse", "allow",
			&o.LiveAllow)},
		{"leaf", "durable|memory", "how a move of the leaf is kept", choice("durable", "memory", &o.LeafMemory)},
		{"context-blobs", "base64|ref", "images in context.json", choice("base64", "ref", &o.ContextBlobsRef)},
		{"blobs", "DIR", "the directory of blobs of a database", text(&o.Blobs)},
		{"shared", "", "other machines write there too", o.setShared(true)},
		{"noshared", "", "they do not (default: by the type)", o.setShared(false)},
		{"memory", "SIZE", "memory beyond the index, as 150m (default 256m)", o.setMemory},
		{"prices", "FILE|none", "other prices, as LiteLLM lists them, or none", text(&o.Prices)},
		{"cache", "user|none", "where stats keeps tokens: in the user's cache", choice("user", "none", &o.NoCache)},
		{"allow_root", "", "let root in too, for backups", setting(&o.AllowRoot, true)},
		{"nonempty", "", "hide what is in MOUNTPOINT, until it is unmounted", setting(&o.NonEmpty, true)},
		{"fsname", "NAME", "source in the mount table (default SOURCE)", o.setFSName},
		{"idle", "TIME", "unmount when nothing was asked for so long, as 10m", o.setIdle},
		{"log-file", "FILE", "the same as --log-file", text(&o.LogFile)},
		{"loglevel", "info|error|warn|debug", "from which level on is logged", o.setLogLevel},
		{"debug", "", "the same as --debug", setting(&o.Debug, true)},
		{"noexec", "", "no program in the mount can be run", setting(&o.NoExec, true)},
		{"exec", "", "the opposite (default)", setting(&o.NoExec, false)},
	}
}

// parseList reads one -o argument, options separated by commas, into o; a backslash before a comma
// or backslash makes it literal, as in libfuse. Of options that contradict each other the last one
// wins.
func parseList(o *Options, list string, sloppy bool) error {
	known := options(o)
	for _, word := range splitList(list) {
		isComment := strings.HasPrefix(word, "x-") || strings.HasPrefix(word, "X-") // x-systemd.*, for other programs
		if word == "" || isComment {
			continue
		}
		name, value, hasValue := strings.Cut(word, "=")
		for _, key := range []string{name, word} {
			reason, isRefused := refused[key]
			if isRefused {
				return fmt.Errorf("-o %s is not possible: %s", key, reason)
			}
		}
		if name == "subtype" && value != Subtype { // mounts left by a crash are recognised by it
			return fmt.Errorf("-o subtype=%s: the type is always %s", value, FSType)
		}
		i := slices.IndexFunc(known, func(k option) bool {
			return k.name == name
		})
		if i >= 0 {
			err := known[i].parse(value, hasValue)
			if err != nil {
				return err
			}
			continue
		}
		if !sloppy && !slices.Contains(accepted, name) {
			return fmt.Errorf("unknown option %q after -o", name)
		}
	}
	return nil
}

// parse sets the option to a value, or refuses it.
func (k option) parse(value string, hasValue bool) error {
	switch {
	case k.value == "" && hasValue:
		return fmt.Errorf("-o %s takes no value, %q was given", k.name, value)
	case k.value != "" && value == "":
		return fmt.Errorf("-o %s needs a value: %s=%s", k.name, k.name, k.value)
	}
	err := k.set(value)
	if err != nil {
		return fmt.Errorf("-o %s=%s: %w", k.name, value, err)
	}
	return nil
}

// splitList splits at the commas that are not escaped by a backslash, and takes the backslashes of escapes away.
func splitList(list string) []string {
	var words []string
	var word strings.Builder
	for i := 0; i < len(list); i++ {
		c := list[i]
		rest := list[i+1:]
		isEscape := c == '\\' && (strings.HasPrefix(rest, ",") || strings.HasPrefix(rest, `\`))
		switch {
		case isEscape:
			i++
			word.WriteByte(list[i])
		case c == ',':
			words = append(words, word.String())
			word.Reset()
		default:
			word.WriteByte(c)
		}
	}
	return append(words, word.String())
}

// setting returns the setter of an option without a value.
func setting(field *bool, value bool) func(string) error {
	return func(string) error {
		*field = value
		return nil
	}
}

// text returns the setter of an option with any value.
func text(field *string) func(string) error {
	return func(value string) error {
		*field = value
		return nil
	}
}

// choice returns the setter of an option with two values, the default and the one that sets the
// field.
func choice(off, on string, field *bool) func(string) error {
	return func(value string) error {
		if value != off && value != on {
			return fmt.Errorf("the value must be %s or %s", off, on)
		}
		*field = value == on
		return nil
	}
}

// setShared returns the setter of the option shared, or of noshared for false.
func (o *Options) setShared(shared bool) func(string) error {
	return func(string) error {
		o.Shared = shared
		o.NotShared = !shared
		return nil
	}
}

// setRules sets a file of rules, which implies redact.
func (o *Options) setRules(value string) error {
	o.Redact = true
	o.RedactRules = value
	return nil
}

// setFSName sets the source in the mount table.
func (o *Options) setFSName(value string) error {
	if strings.ContainsAny(value, "\x00\n") {
		return fmt.Errorf("a name in the mount table has no line break and no NUL")
	}
	o.FSName = value
	return nil
}

// minMemory and maxMemory bound the size: with less hardly anything works (sessioncore/budget).
const (
	minMemory = 64 << 20
	maxMemory = 1 << 40
)

// setMemory sets the memory to a number of bytes, in decimal digits, or of the units k, m and g behind them, of either
// case. The value is not empty.
func (o *Options) setMemory(value string) error {
	digits := value
	shift := 0
	last := len(value) - 1
	const lowerCase = 0x20 // the bit that a letter has in lower case alone
	unit := strings.IndexByte("kmg", value[last]|lowerCase)
	if unit >= 0 {
		digits = value[:last]
		shift = 10 * (unit + 1)
	}
	n, err := strconv.ParseUint(digits, 10, 40) // so that the shift loses no bit
	if err != nil || n<<shift < minMemory || n > maxMemory>>shift {
		return fmt.Errorf("the value must be a size from %dm to %dg, such as 150m", minMemory>>20, maxMemory>>30)
	}
	o.Memory = int64(n << shift)
	return nil
}

// minIdle is the least time: the kernel answers some requests itself for a second.
const minIdle = 2 * time.Second

// setIdle sets the time of Idle, which is written with units, such as 90s, 10m or 1h30m.
func (o *Options) setIdle(value string) error {
	d, err := time.ParseDuration(value)
	if err != nil || d < minIdle {
		return fmt.Errorf("the value must be a time of at least %s, such as 90s, 10m or 1h30m", minIdle)
	}
	o.Idle = d
	return nil
}

// logLevels are the levels of the option loglevel, by their names. debug is Debug, which logs every request too.
var logLevels = map[string]slog.Level{
	"error": slog.LevelError,
	"warn":  slog.LevelWarn,
	"info":  slog.LevelInfo,
}

// setLogLevel sets the level. debug sets Debug, and leaves LogLevel as it is.
func (o *Options) setLogLevel(value string) error {
	if value == "debug" {
		o.Debug = true
		return nil
	}
	level, isLevel := logLevels[value]
	if !isLevel {
		return errors.New("the value must be error, warn, info or debug")
	}
	o.Debug = false
	o.LogLevel = level
	return nil
}

// OptionWords returns the options that have an effect as they are typed, with each of their values
// if these are words, or up to the equals sign.
func OptionWords() (words []string) {
	for _, k := range options(&Options{}) {
		switch {
		case k.value == "":
			words = append(words, k.name)
		case strings.Contains(k.value, "|"):
			for value := range strings.SplitSeq(k.value, "|") {
				words = append(words, k.name+"="+value)
			}
		default:
			words = append(words, k.name+"=")
		}
	}
	return words
}

// String returns the option as it is written in help.
func (k option) String() string {
	if k.value == "" {
		return k.name
	}
	return k.name + "=" + k.value
}

// People and programs pass options of other file systems. Those that may be ignored without harm
// are accepted; the others are refused with a reason.

// accepted are the options without effect, whatever their value. First come those that mount(8),
// fstab and systemd pass: the kernel keeps no access times for FUSE; nosuid, nodev and
// default_permissions are always on; mount.fuse3 adds suid and dev. Then come options of other FUSE file
// systems: caching is a part of the contract (docs/design.md section 6), and requests have the
// largest sizes. A mount that a signal ends is unmounted without auto_unmount; after kill -9 the
// next mount in its place cleans up. The last is context; its one value is the default of earlier
// versions.
var accepted = strings.Fields(`
  defaults default_permissions nosuid suid nodev dev atime noatime relatime
  norelatime strictatime nostrictatime diratime nodiratime lazytime nolazytime
  auto noauto nofail _netdev user nouser users nousers owner noowner group
  nogroup comment silent loud mand nomand dirsync iversion noiversion subtype
  auto_unmount entry_timeout attr_timeout negative_timeout ac_attr_timeout
  kernel_cache auto_cache noauto_cache direct_io max_read max_write
  max_readahead max_background congestion_threshold async_read sync_read
  big_writes large_read hard_remove use_ino readdir_ino intr context
`)

// refused are options that users may try, with the reason why they are not supported. Ignoring them
// silently would suggest that they have an effect. A key with a value refuses that value alone.
var refused = map[string]string{
	"blobs=postgres": "this version keeps no images in a database; docs/team.md says how they get into a directory, " +
		"for blobs=DIR (one named postgres is ./postgres)",
	"context=sent": "this version does not have it any more: context.json has messages as they are stored; " +
		"leave it out",
	"uid":   "files have the owner of the file behind them; leave it out",
	"gid":   "files have the group of the file behind them; leave it out",
	"umask": "files have the mode of the file behind them; leave it out",
	"fmask": "files have the mode of the file behind them; leave it out",
	"dmask": "files have the mode of the file behind them; leave it out",
	"allow_other": "each user mounts SOURCE for himself, so that the system checks what he may read there; " +
		"for root alone there is allow_root",
	"remount":         "unmount (sessionfs -u) and mount again",
	"bind":            "use mount --bind on the mounted directory",
	"setuid":          "run sessionfs as that user (mount -t fuse.sessionfs understands setuid=)",
	"drop_privileges": "run sessionfs as an ordinary user instead",
}
