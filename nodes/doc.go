// Package nodes holds the inodes of a mount: the directories of SOURCE as they are, the directory that
// shows each session, the ways to find sessions, and the prompt history. Nodes translate between the
// kernel and package sessioncore and hold no content but what an open file shows.
//
// The table has a row for everything that can be seen, special before general: the first row that fits a path is
// the one. A path that ends in / is a directory, in @ a symbolic link. … stands for any number of directories, <…>
// for one name; (unlisted) is found by name only. Reads is the file whose code makes what is read: it answers for a
// type of its own, and where a type serves many rows (GeneratedFile, ControlFile, Link, FixedLink, SessionLink,
// LinksDir) it renders the content or finds the target. Writes is the file that carries out what is written; below
// archive/ all of it is refused. Operations are what a node answers besides refusing: list is readdir with its lookups, write that open takes writing
// too. Cache is what the kernel may remember: a second of name and attributes, a second (attr) or a tenth (moment) of the
// attributes alone that a lookup brought, or never anything; pages that it keeps are another matter (entry.go,
// entriesfile.go, sourcefile.go).
//
//	path                                      type           reads              writes        operations                                cache
//	/                                         RootDir        root.go            -             getattr lookup list                       second
//	archive/                                  ArchiveDir     archive.go         -             getattr lookup list                       second
//	archive/index.jsonl                       IndexFile      indexjsonl.go      -             getattr open                              never
//	blobs/                                    SourceDir      source.go          -             getattr lookup list                       second
//	blobs/<sha256>                            SourceFile     sourcefile.go      -             getattr open                              never
//	by-cwd/                                   LinksDir       layout/bycwd.go    -             getattr lookup list                       second
//	by-cwd/…/<name>@                          SessionLink    layout/bycwd.go    -             getattr readlink                          attr
//	by-cwd/…/<dir>/                           LinksDir       layout/bycwd.go    -             getattr lookup list                       second
//	by-file/                                  ByFileDir      byfile.go          -             getattr lookup list                       second
//	by-file/…/<name>/entries/ (unlisted)      HitLinksDir    hits.go            -             getattr lookup list                       second
//	by-file/…/entries/<entry>@ (unlisted)     FixedLink      hits.go            -             getattr readlink                          second
//	by-file/…/<name>/results.tsv (unlisted)   HitsTable      hits.go            -             getattr open                              never
//	by-file/…/<name>/sessions/ (unlisted)     HitLinksDir    hits.go            -             getattr lookup list                       second
//	by-file/…/sessions/<name>@ (unlisted)     FixedLink      hits.go            -             getattr readlink                          second
//	by-file/…/<name>/ (unlisted)              FileDir        byfile.go          -             getattr lookup list                       second
//	by-id/                                    LinksDir       layout/byid.go     -             getattr lookup list                       second
//	by-id/<id>@                               SessionLink    layout/byid.go     -             getattr readlink                          attr
//	by-id/<key>@ (unlisted)                   SessionLink    layout/byid.go     -             getattr readlink                          attr
//	continue/                                 LinksDir       layout/continue.go -             getattr lookup list                       second
//	continue/<terminal>@                      SessionLink    layout/continue.go -             getattr readlink                          attr
//	history/                                  HistoryDir     history.go         -             getattr lookup list                       second
//	history/prompts.jsonl                     PromptsFile    prompts.go         -             getattr open                              never
//	history/search/                           HistorySearchDir historysearch.go -           getattr lookup list                       second
//	history/search/<query> (unlisted)         PromptsFile    prompts.go         -             getattr open                              never
//	index.jsonl                               IndexFile      indexjsonl.go      -             getattr open                              never
//	last-error                                LastErrorFile  lasterror.go       -             getattr open                              never
//	new-session                               NewSessionFile newsession.go      newsession.go getattr setattr open write                never
//	recent/                                   LinksDir       layout/recent.go   -             getattr lookup list                       second
//	recent/<name>@                            SessionLink    layout/recent.go   -             getattr readlink                          attr
//	search/                                   SearchDir      search.go          -             getattr lookup list                       second
//	…/search/<query>/ (unlisted)              HitsDir        hits.go            -             getattr lookup list                       second
//	…/search/<query>/entries/ (unlisted)      HitLinksDir    hits.go            -             getattr lookup list                       second
//	…/search/<query>/entries/<entry>@ (unlisted) FixedLink   hits.go            -             getattr readlink                          second
//	…/search/<query>/results.tsv (unlisted)   HitsTable      hits.go            -             getattr open                              never
//	…/search/<query>/sessions/ (unlisted)     HitLinksDir    hits.go            -             getattr lookup list                       second
//	…/search/<query>/sessions/<name>@ (unlisted) FixedLink   hits.go            -             getattr readlink                          second
//	terminal-sessions/                        SourceDir      source.go          -             getattr lookup list                       second
//	terminal-sessions/<terminal>              SourceFile     sourcefile.go      -             getattr open                              never
//	usage.jsonl (unlisted)                    CostsFile      usagejsonl.go      -             getattr open                              never
//	sessions/                                 SourceDir      source.go          -             getattr lookup list                       second
//	…/<session>/                              SessionDir     session.go         leafwrite.go  getattr lookup list symlink unlink rename second
//	…/<session>/append                        ControlFile    append.go          append.go     getattr setattr open write                never
//	…/<session>/artifacts/                    SourceDir      source.go          -             getattr lookup list                       second
//	…/<session>/branches/                     BranchesDir    branches.go        -             getattr lookup list                       second
//	…/<session>/branches/.by-id/              BranchIDsDir   branches.go        -             getattr lookup list                       second
//	…/.by-id/<id>/ (unlisted)                 BranchDir      branch.go          -             getattr lookup list                       second
//	…/.by-id/<id>/context.json (unlisted)     GeneratedFile  context.go         -             getattr open                              never
//	…/.by-id/<id>/entries.jsonl (unlisted)    EntriesFile    entriesfile.go     -             getattr open                              moment
//	…/.by-id/<id>/path/ (unlisted)            BranchPathDir  branchpath.go      -             getattr lookup list                       second
//	…/.by-id/<id>/path/<entry>@ (unlisted)    FixedLink      branchpath.go      -             getattr readlink                          second
//	…/.by-id/<id>/transcript.md (unlisted)    GeneratedFile  transcript.go      -             getattr open                              never
//	…/<session>/branches/current@             Link           branches.go        -             getattr readlink                          never
//	…/<session>/branches/<id>@                FixedLink      branches.go        -             getattr readlink                          second
//	…/<session>/branches.tsv                  GeneratedFile  branchestsv.go     -             getattr open                              never
//	…/<session>/by-label/                     ByLabelDir     bylabel.go         -             getattr lookup list                       second
//	…/<session>/by-label/<label>@             Link           bylabel.go         -             getattr readlink                          never
//	…/<session>/children/                     ChildrenDir    children.go        -             getattr lookup list                       second
//	…/<session>/children/<name>@              SessionLink    children.go        -             getattr readlink                          attr
//	…/<session>/context.json                  GeneratedFile  context.go         -             getattr open                              never
//	…/<session>/cwd                           ControlFile    cwd.go             cwd.go        getattr setattr open write                never
//	…/<session>/entries/                      EntriesDir     entries.go         -             getattr lookup list                       second
//	…/<session>/entries/<id>.json             EntryFile      entry.go           -             getattr open                              second
//	…/<session>/fork                          ControlFile    fork.go            fork.go       getattr setattr open write                never
//	…/<session>/header.json                   GeneratedFile  header.go          -             getattr open                              never
//	…/<session>/labels                        ControlFile    labels.go          labels.go     getattr setattr open write                never
//	…/<session>/last-error                    LastErrorFile  lasterror.go       -             getattr open                              never
//	…/<session>/leaf@                         LeafLink       leaf.go            leafwrite.go  getattr setattr readlink                  never
//	…/<session>/owner (unlisted)              OwnerFile      owner.go           -             getattr open                              never
//	…/<session>/parent@                       SessionLink    parent.go          -             getattr readlink                          attr
//	…/<session>/problems.jsonl                GeneratedFile  problems.go        -             getattr open                              never
//	…/<session>/search/                       SearchDir      search.go          -             getattr lookup list                       second
//	…/<session>/secrets.jsonl (unlisted)      GeneratedFile  secrets.go         -             getattr open                              never
//	…/<session>/title                         ControlFile    title.go           title.go      getattr setattr open write                never
//	…/<session>/transcript.md                 GeneratedFile  transcript.go      -             getattr open                              never
//	…/<session>/tree/                         TreeRoot       tree.go            -             getattr lookup list                       second
//	…/<session>/tree/.deep/                   TreeRoot       tree.go            -             getattr lookup list                       second
//	…/<session>/tree/.deep/…/<id>/            TreeDir        tree.go            -             getattr lookup list                       second
//	…/<session>/tree/.deep/…/<id>/entry.json@ FixedLink      tree.go            -             getattr readlink                          second
//	…/<session>/tree/.deep/…/<id>/<id>@       FixedLink      tree.go            -             getattr readlink                          second
//	…/<session>/tree/…/<id>/                  TreeDir        tree.go            -             getattr lookup list                       second
//	…/<session>/tree/…/<id>/entry.json@       FixedLink      tree.go            -             getattr readlink                          second
//	…/<session>/tree/…/<id>/<id>@             FixedLink      tree.go            -             getattr readlink                          second
//	…/<session>/usage.json                    GeneratedFile  usage.go           -             getattr open                              never
//	…/<session>/<temporary>@ (unlisted)       PendingLink    leafwrite.go       leafwrite.go  getattr setattr readlink                  never
//	…/<session>/<artifact>/ (unlisted)        SourceDir      source.go          -             getattr lookup list                       second
//	…/<session>/<artifact> (unlisted)         SourceFile     sourcefile.go      -             getattr open                              never
//	archive/…/<dir>/                          SourceDir      source.go          -             getattr lookup list                       second
//	archive/…/<file>                          SourceFile     sourcefile.go      -             getattr open                              never
//	archive/…/<link>@                         Link           sourcefile.go      -             getattr readlink                          never
//	sessions/…/<dir>/                         SourceDir      source.go          -             getattr lookup list                       second
//	sessions/…/<file>                         SourceFile     sourcefile.go      -             getattr open                              never
//	sessions/…/<link>@                        Link           sourcefile.go      -             getattr readlink                          never
package nodes
