// Package nodes holds the inodes of a mount: the directories of SOURCE as they are, and the directory
// that shows each session. Nodes translate between the kernel and package sessioncore and hold no
// content.
//
// A row for everything that can be seen, special before general: the first row that fits a path is the
// one. A path that ends in / is a directory, in @ a symbolic link. … stands for any number of
// directories, <…> for one name; (unlisted) is found by name only. Operations are what a node answers
// besides refusing: list is readdir with its lookups, write that open takes writing too. Cache is what
// the kernel may remember: a second of name and attributes, or never anything; pages that it keeps are
// another matter (entry.go, sourcefile.go).
//
//	path                                      type           file           operations                                cache
//	/                                         RootDir        root.go        getattr lookup list                       second
//	blobs/                                    SourceDir      source.go      getattr lookup list                       second
//	blobs/<sha256>                            SourceFile     sourcefile.go  getattr open                              never
//	new-session                               NewSessionFile newsession.go  getattr setattr open write                never
//	terminal-sessions/                        SourceDir      source.go      getattr lookup list                       second
//	terminal-sessions/<terminal>              SourceFile     sourcefile.go  getattr open                              never
//	sessions/                                 SourceDir      source.go      getattr lookup list                       second
//	…/<session>/                              SessionDir     session.go     getattr lookup list symlink unlink rename second
//	…/<session>/append                        ControlFile    controlfile.go getattr setattr open write                never
//	…/<session>/artifacts/                    SourceDir      source.go      getattr lookup list                       second
//	…/<session>/context.json                  GeneratedFile  context.go     getattr open                              never
//	…/<session>/entries/                      EntriesDir     entries.go     getattr lookup list                       second
//	…/<session>/entries/<id>.json             EntryFile      entry.go       getattr open                              second
//	…/<session>/fork                          ControlFile    fork.go        getattr setattr open write                never
//	…/<session>/header.json                   GeneratedFile  header.go      getattr open                              never
//	…/<session>/labels                        ControlFile    labels.go      getattr setattr open write                never
//	…/<session>/last-error                    LastErrorFile  lasterror.go   getattr open                              never
//	…/<session>/leaf@                         LeafLink       leaf.go        getattr readlink                          never
//	…/<session>/problems.jsonl                GeneratedFile  problems.go    getattr open                              never
//	…/<session>/title                         ControlFile    title.go       getattr setattr open write                never
//	…/<session>/tree/                         TreeRoot       tree.go        getattr lookup list                       second
//	…/<session>/tree/.deep/                   TreeRoot       tree.go        getattr lookup list                       second
//	…/<session>/tree/.deep/…/<id>/            TreeDir        tree.go        getattr lookup list                       second
//	…/<session>/tree/.deep/…/<id>/entry.json@ TreeLink       tree.go        getattr readlink                          second
//	…/<session>/tree/.deep/…/<id>/<id>@       TreeLink       tree.go        getattr readlink                          second
//	…/<session>/tree/…/<id>/                  TreeDir        tree.go        getattr lookup list                       second
//	…/<session>/tree/…/<id>/entry.json@       TreeLink       tree.go        getattr readlink                          second
//	…/<session>/tree/…/<id>/<id>@             TreeLink       tree.go        getattr readlink                          second
//	…/<session>/<temporary>@ (unlisted)       PendingLink    leafwrite.go   getattr readlink                          never
//	…/<session>/<artifact>/ (unlisted)        SourceDir      source.go      getattr lookup list                       second
//	…/<session>/<artifact> (unlisted)         SourceFile     sourcefile.go  getattr open                              never
//	sessions/…/<dir>/                         SourceDir      source.go      getattr lookup list                       second
//	sessions/…/<file>                         SourceFile     sourcefile.go  getattr open                              never
//	sessions/…/<link>@                        SourceLink     sourcefile.go  getattr readlink                          never
package nodes
