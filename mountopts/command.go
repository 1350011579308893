package mountopts

import (
	_ "embed"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// Command is a parsed command line, which asks for one of Help, Version, Unmount, or a mount.
type Command struct {
	Options Options // Source is empty where it is not given
	Help    bool    // -h
	Version bool    // --version
	Unmount bool    // -u
	Lazy    bool    // -z, with Unmount: detach a mount that is in use
	Helper  bool    // mount(8) runs the command: its name begins with helperPrefix
	Fake    bool    // -f of mount(8), only with Helper: do everything but the mount itself
}

// helperPrefix starts the names under which mount(8) looks for a helper: mount.sessionfs,
// mount.fuse.sessionfs.
const helperPrefix = "mount."

// IsHelper reports whether a program's name is one that mount(8) runs.
func IsHelper(program string) bool { return strings.HasPrefix(filepath.Base(program), helperPrefix) }

// flagValues holds the values of the flags that only the parser needs.
type flagValues struct {
	options                               []string
	all, debug                            bool
	fsType, namespace, logFile            string
	sloppy, ignoredMtab, ignoredVerbosity bool
}

// flags returns the flag set, which sets fields of c and v. mount(8) passes its helpers
// `-sfnv -N NAMESPACE -o OPTIONS -t TYPE`, where -f has another meaning than ours, so the set depends on c.Helper.
func flags(c *Command, v *flagValues) *pflag.FlagSet {
	f := pflag.NewFlagSet("sessionfs", pflag.ContinueOnError)
	f.SortFlags = false
	f.Usage = func() {}
	f.StringArrayVarP(&v.options, "options", "o", nil, "mount `OPTIONS`, separated by commas; see below")
	front := "f"
	if c.Helper {
		front = ""
		f.BoolVarP(&c.Fake, "fake", "f", false, "")
	}
	f.BoolVarP(&c.Options.Foreground, "foreground", front, false, "stay in front, log to stderr")
	f.BoolVarP(&v.debug, "debug", "d", false, "log at debug level")
	f.StringVar(&v.logFile, "log-file", "", "log to `FILE`; SIGHUP reopens it")
	f.BoolVar(&c.Options.Demo, "demo", false, "serve a built-in sample store; changes are not kept")
	f.BoolVar(&v.all, "all", false, "mount the sessions of every agent of this user")
	f.BoolVarP(&c.Unmount, "unmount", "u", false, "unmount MOUNTPOINT")
	f.BoolVarP(&c.Lazy, "lazy", "z", false, "with -u: detach it also while it is in use")
	f.BoolVar(&c.Version, "version", false, "print the version and exit")
	f.BoolVarP(&c.Help, "help", "h", false, "print a short help and exit")
	f.StringVarP(&v.fsType, "types", "t", "", "")
	f.StringVarP(&v.namespace, "namespace", "N", "", "")
	f.BoolVarP(&v.sloppy, "sloppy", "s", false, "")
	f.BoolVarP(&v.ignoredMtab, "no-mtab", "n", false, "")
	f.BoolVarP(&v.ignoredVerbosity, "verbose", "v", false, "")
	for _, name := range []string{"types", "namespace", "no-mtab", "sloppy", "verbose"} {
		_ = f.MarkHidden(name) // cannot fail: they are defined above
	}
	return f
}

// Parse parses a command line; args[0] is the name of the program. Every error is a usage error; the command then has
// all that was parsed before.
func Parse(args []string) (c Command, err error) {
	if len(args) == 0 {
		return c, errors.New("no arguments, not even a program name")
	}
	c.Helper = IsHelper(args[0])
	var v flagValues
	f := flags(&c, &v)
	err = CheckValues(f, args[1:])
	if err != nil {
		return c, err
	}
	err = f.Parse(args[1:])
	if err != nil {
		return c, InWords(f, err)
	}
	switch {
	case c.Help, c.Version: // whatever else stands there
		return c, nil
	case c.Unmount:
		return c, c.unmountArgs(f.Args())
	case c.Lazy:
		return c, errors.New("-z (--lazy) goes with -u only")
	}
	err = c.setMount(f, &v)
	if err != nil {
		return c, err
	}
	return c, c.mountArgs(f.Args())
}

// setMount sets the options of a mount from parsed flags.
func (c *Command) setMount(f *pflag.FlagSet, v *flagValues) (err error) {
	if v.namespace != "" {
		return errors.New("-N is not possible: run mount inside the namespace (nsenter)")
	}
	fsType := strings.TrimPrefix(v.fsType, "fuse.")
	isOurs := fsType == "" || fsType == Subtype || fsType == "fuse"
	if !isOurs {
		return fmt.Errorf("-t %s: the type is always %s", v.fsType, FSType)
	}
	isSloppy := v.sloppy && c.Helper // only mount(8) may ask for it
	c.Options, err = ParseOptions(c.Options, v.options, isSloppy)
	if err != nil {
		return err
	}
	if v.debug {
		c.Options.Debug = true
	}
	if f.Changed("log-file") {
		c.Options.LogFile = v.logFile
	}
	if v.all {
		c.Options.Source = All
	}
	return nil
}

// unmountArgs parses the arguments of -u.
func (c *Command) unmountArgs(args []string) error {
	if len(args) != 1 || args[0] == "" {
		return fmt.Errorf("-u takes exactly one MOUNTPOINT, %d were given", len(args))
	}
	c.Options.Mountpoint = args[0]
	if IsDatabase(args[0]) {
		return errDatabaseLast
	}
	return nil
}

var errDatabaseLast = errors.New("a database is SOURCE, not MOUNTPOINT, which is a directory and comes after it")

// mountArgs parses the arguments [SOURCE] MOUNTPOINT of a mount. Its options must be set before.
func (c *Command) mountArgs(args []string) error {
	o := &c.Options
	if slices.Contains(args, "") {
		return errors.New("an argument is empty")
	}
	hasSource := o.Demo || o.Source != ""
	switch {
	case len(args) == 0:
		return errors.New("MOUNTPOINT is missing")
	case o.Demo && o.Source != "":
		return errors.New("--demo brings its own SOURCE, of every agent: leave --all out")
	case hasSource && len(args) > 1:
		return errors.New("--demo and --all bring their own SOURCE: give MOUNTPOINT alone")
	case len(args) > 2:
		return fmt.Errorf("at most SOURCE and MOUNTPOINT are expected, %d arguments were given", len(args))
	case c.Helper && !hasSource && len(args) != 2:
		return errors.New("mount(8) helpers are called with SOURCE and MOUNTPOINT")
	}
	o.Mountpoint = args[len(args)-1]
	if IsDatabase(o.Mountpoint) {
		return errDatabaseLast
	}
	if strings.HasPrefix(o.Mountpoint, "/dev/fd/") {
		return fmt.Errorf("MOUNTPOINT %s: a mount made beforehand (drop_privileges) cannot be taken over", o.Mountpoint)
	}
	if len(args) < 2 {
		return nil
	}
	o.Source = args[0]
	if c.Helper { // as in fstab: sessionfs#SOURCE
		o.Source = strings.TrimPrefix(o.Source, Subtype+"#")
	}
	if o.Source == "" {
		return errors.New("SOURCE is not given")
	}
	return o.CheckSource()
}

// ParseOptions returns o with the changes by the arguments of -o. With sloppy, which is mount(8)'s -s,
// unknown options are ignored. After an error it returns the options that were parsed before.
func ParseOptions(o Options, lists []string, sloppy bool) (_ Options, err error) {
	for _, list := range lists {
		err = parseList(&o, list, sloppy)
		if err != nil {
			break
		}
	}
	return o, err
}

// Flags returns the flags of a mount, for completions.
func Flags() *pflag.FlagSet { return flags(&Command{}, &flagValues{}) }

// The texts of help: summary.txt fits a screen, usage.txt is for a mount.
var (
	//go:embed summary.txt
	summary string
	//go:embed usage.txt
	usage string
)

// Summary is the help that fits a screen. others are the titles of agents besides omp and pi.
func Summary(others string) string { return Wrap(fmt.Sprintf(summary, others)) }

// Usage is the help of a mount. Flags and options come from the lists that the parser uses. others
// says where the directories of other agents are.
func Usage(others string) string {
	var list strings.Builder
	for _, k := range options(&Options{}) {
		fmt.Fprintf(&list, "  %-24s  %s\n", k, k.help)
	}
	intro, rest, _ := strings.Cut(usage, "\nFlags:\n")
	return Wrap(fmt.Sprintf(intro, others)) + fmt.Sprintf("\nFlags:\n"+rest, Flags().FlagUsages(), &list)
}

// HelpWidth is how many columns help has.
const HelpWidth = 80

// wideLine matches as many words as fit on a line of help, and the end of that.
var wideLine = regexp.MustCompile(fmt.Sprintf(`(.{1,%d})(?: +|\n|$)`, HelpWidth))

// Wrap breaks the lines of a text that do not fit.
func Wrap(text string) string { return wideLine.ReplaceAllString(text, "$1\n") }
