"""Paths in a log: Spark writes absolute paths, so a log is valid for one storage root."""

from __future__ import annotations

from urllib.parse import quote, unquote

from drawdown.checkpoint.file_log import plain_path

# Characters that java.net.URI does not escape in a path, besides non-ASCII: org.apache.hadoop.fs.Path.toUri.
_PLAIN = "/:@!$&'()*+,;=~"
_ASCII = 128


def is_below(uri: str, root: str) -> bool:
    """Whether a path, spelled as in a log, is in a storage root."""
    return plain_path(unquote(uri)).startswith(f"{plain_path(root).rstrip('/')}/")


def moved(uri: str, old: str, new: str) -> str:
    """Return the same file in the root `new`; a path outside `old` stays as it is."""
    if not is_below(uri, old):
        return uri
    below = plain_path(unquote(uri))[len(plain_path(old).rstrip("/")) :]
    # The names below the root keep their spelling.
    return spelled(new.rstrip("/")) + "/" + "/".join(uri.split("/")[-below.count("/") :])


def spellings(old: str, new: str) -> set[tuple[str, str]]:
    """Return both roots as prefixes of paths: as `Storage.path` spells them, and as `plain_path` does."""
    both = {(old, new), (plain_path(old), plain_path(new))}
    return {(f"{before.rstrip('/')}/", f"{after.rstrip('/')}/") for before, after in both}


def spelled(root: str) -> str:
    """Return a path or URL as Hadoop's Path spells it in a log."""
    uri = f"file://{plain_path(root)}" if plain_path(root).startswith("/") else root
    return "".join(quote(each, safe=_PLAIN) if ord(each) < _ASCII else each for each in uri)
