"""The ladder of sandboxes: what confines the process that runs a reader's code.

| level | how                                                                               |
|-------|-----------------------------------------------------------------------------------|
| 3     | bubblewrap (own namespaces, an empty root with read-only binds), then as level 2  |
| 2     | no new privileges, no capabilities, Landlock, a seccomp filter, resource limits   |
| 0     | resource limits and the watchdog only: for one's own code                         |

The modules that lock a process down run inside the box too: these use the standard library only.
"""
