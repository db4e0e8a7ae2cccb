"""Disks on which a store may be written: those of one machine.

The lock of a runner and the log of SQLite work among the processes of one machine.  On a disk that
several machines share, locks may be local, fail or be lost, and a log that another machine cannot
see leads to lost rows; so stores on such disks are read, but not written.
"""

from __future__ import annotations

from pathlib import Path

from moestat.sweep.errors import SweepError

__all__ = ["check_local", "network_disk"]

_NETWORK = {
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "smbfs",
    "afs",
    "ceph",
    "lustre",
    "gpfs",
    "beegfs",
    "glusterfs",
    "orangefs",
    "fuse.sshfs",
    "fuse.glusterfs",
    "fuse.ceph",
    "fuse.s3fs",
    "fuse.rclone",
    "fuse.gcsfuse",
    "davfs",
}
"""Kinds of file systems that several machines share, as the table of mounts calls them."""

_MOUNTS = Path("/proc/self/mountinfo")


def check_local(store: Path) -> None:
    """Refuse to write a store on a network disk."""
    kind = network_disk(store)
    if kind is not None:
        raise SweepError(
            f"the store {store} would be on a network disk ({kind}), where locks and the log of"
            " SQLite are not those of one machine: run into a file on a local disk, and copy it"
            " with backup; stores on network disks can be read"
        )


def network_disk(path: Path) -> str | None:
    """The kind of network disk that a path is on; None for a local one, or where nobody says."""
    try:
        lines = _MOUNTS.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # not Linux
        return None
    place, filesystem, longest = path.resolve(), None, -1
    for line in lines:
        before, _, after = line.partition(" - ")
        if len(before.split()) < 5 or not after:
            continue
        mount = Path(before.split()[4].replace(r"\040", " "))
        # Of several mounts at one place the last one counts.
        if place.is_relative_to(mount) and len(mount.parts) >= longest:
            longest, filesystem = len(mount.parts), after.split()[0]
    return filesystem if filesystem in _NETWORK else None
