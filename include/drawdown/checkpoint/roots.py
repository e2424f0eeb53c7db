"""Where the files are that a log names: Spark writes absolute paths, so a log holds for one storage root."""

from __future__ import annotations

from urllib.parse import quote, unquote

from drawdown.checkpoint.file_log import plain_path

# What java.net.URI leaves as it is in a path, beside what is no ASCII: org.apache.hadoop.fs.Path.toUri.
_PLAIN = "/:@!$&'()*+,;=~"
_ASCII = 128


def is_below(uri: str, root: str) -> bool:
    """Whether a path in the spelling of a log is in a storage root."""
    return plain_path(unquote(uri)).startswith(f"{plain_path(root).rstrip('/')}/")


def moved(uri: str, old: str, new: str) -> str:
    """The same file in the root `new`; a path that is not in `old` stays as it is."""
    if not is_below(uri, old):
        return uri
    below = plain_path(unquote(uri))[len(plain_path(old).rstrip("/")) :]
    # As many names as stand below the root: they keep their spelling.
    return _spelled(new.rstrip("/")) + "/" + "/".join(uri.split("/")[-below.count("/") :])


def spellings(old: str, new: str) -> set[tuple[str, str]]:
    """Both roots as beginnings of paths: as `Storage.path` gives them, and as `plain_path` does."""
    both = {(old, new), (plain_path(old), plain_path(new))}
    return {(f"{before.rstrip('/')}/", f"{after.rstrip('/')}/") for before, after in both}


def _spelled(root: str) -> str:
    uri = f"file://{plain_path(root)}" if plain_path(root).startswith("/") else root
    return "".join(quote(each, safe=_PLAIN) if ord(each) < _ASCII else each for each in uri)
