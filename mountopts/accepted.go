package mountopts

import "slices"

// Options that people and programs pass because they do so for other file systems are accepted where a mount that does
// not obey them is what they want all the same, and refused with a reason where it would not be.

// fromMount are options that mount(8), fstab and systemd pass. The kernel keeps no access times for FUSE. nosuid, nodev
// and default_permissions are always on; mount.fuse3 adds suid and dev by itself.
var fromMount = []option{
	{name: "defaults"}, {name: "default_permissions"},
	{name: "nosuid"}, {name: "suid"}, {name: "nodev"}, {name: "dev"},
	{name: "atime"}, {name: "relatime"}, {name: "norelatime"}, {name: "strictatime"}, {name: "nostrictatime"},
	{name: "diratime"}, {name: "nodiratime"}, {name: "lazytime"}, {name: "nolazytime"},
	{name: "auto"}, {name: "noauto"}, {name: "nofail"}, {name: "_netdev"},
	{name: "user", value: "NAME", optional: true}, {name: "nouser"}, {name: "users"}, {name: "nousers"},
	{name: "owner"}, {name: "noowner"}, {name: "group"}, {name: "nogroup"},
	{name: "silent"}, {name: "loud"}, {name: "mand"}, {name: "nomand"}, {name: "iversion"}, {name: "noiversion"},
	{name: "comment", value: "TEXT", optional: true},
	{name: "subtype", value: Subtype, set: setSubtype},
}

// fromFUSE are options of other FUSE file systems. Those about caches and sizes of requests change nothing that can be
// seen: what the kernel may remember is part of what the mount promises (docs/design.md section 6), and the sizes are
// the largest. A mount that a signal ends is unmounted without auto_unmount; after kill -9 the next mount at the same
// place cleans up.
var fromFUSE = []option{
	{name: "auto_unmount"},
	tuning("entry_timeout"), tuning("attr_timeout"), tuning("negative_timeout"), tuning("ac_attr_timeout"),
	{name: "kernel_cache"}, {name: "auto_cache"}, {name: "noauto_cache"}, {name: "direct_io"},
	tuning("max_read"), tuning("max_write"), tuning("max_readahead"), tuning("max_background"), tuning("congestion_threshold"),
	{name: "async_read"}, {name: "sync_read"}, {name: "big_writes"}, {name: "large_read"}, {name: "hard_remove"},
	{name: "use_ino"}, {name: "readdir_ino"}, {name: "intr"},
}

// tuning is an option without effect that other file systems give a number.
func tuning(name string) option { return option{name: name, value: "N", optional: true} }

// refused are options that users may try, with the reason why they are not supported. Ignoring them silently
// would suggest that they have an effect.
var refused = map[string]string{
	"uid":             "files have the owner of the file behind them; leave it out",
	"gid":             "files have the group of the file behind them; leave it out",
	"umask":           "files have the mode of the file behind them; leave it out",
	"fmask":           "files have the mode of the file behind them; leave it out",
	"dmask":           "files have the mode of the file behind them; leave it out",
	"allow_other":     "each user mounts SOURCE for himself, so that the system checks what he may read there; for root alone there is allow_root",
	"remount":         "unmount (sessionfs -u) and mount again",
	"bind":            "use mount --bind on the mounted directory",
	"setuid":          "run sessionfs as that user (mount -t fuse.sessionfs understands setuid=)",
	"drop_privileges": "run sessionfs as an ordinary user instead",
}

// OptionNames returns the names of the options of -o that have an effect, that are accepted without, and that are
// refused.
func OptionNames() (effect, without, refusals []string) {
	for _, k := range obeyed {
		effect = append(effect, k.name)
	}
	for _, k := range slices.Concat(fromMount, fromFUSE) {
		without = append(without, k.name)
	}
	for name := range refused {
		refusals = append(refusals, name)
	}
	return effect, without, refusals
}
