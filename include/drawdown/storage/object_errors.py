"""What libraries say when a bucket does not answer or says no, as one of our errors.

Obstore, delta-rs (both with Rust's object_store) and Hadoop's clients reach a bucket: S3A with Amazon's
SDK, and the one with Google's library. Their sentences hold class names, request ids and whole answers in
XML; of these a user sees the storage's own code and sentence.
"""

from __future__ import annotations

import re

from drawdown.errors import SourceError

OF_A_BUCKET = ("storage.no-bucket", "storage.denied", "storage.unreachable")
"""The ids that this module gives."""

_LIBRARIES = re.compile(
    r"Generic (?:S3|GCS) error|Error performing [A-Z]+ https?://|org\.apache\.hadoop\.fs\.s3a\.[\w.]*(?:Exception|Credential)"
    r"|software\.amazon\.awssdk|\(Service: S3,|com\.google\.cloud\.storage\.StorageException"
)
_MISSING = re.compile(r"NoSuchKey|[Ss]tatus [Cc]ode: 404|StorageException: 404")
_NO_BUCKET = re.compile(r"NoSuchBucket|UnknownStoreException|The specified bucket does not exist")
_DENIED = re.compile(
    r"[Ss]tatus [Cc]ode: 40[13]|AccessDenied|ExpiredToken|InvalidAccessKeyId|SignatureDoesNotMatch"
    r"|InvalidToken|token has expired|NoAuthWithAWS|CredentialInitialization|Unable to load credentials"
    r"|StorageException: 40[13]|Error getting access token|GCP credential error"
    # versitygw's word for an unknown access key.
    r"|XAdminUserNotFound"
    # The answer to a HEAD has no body: so is a key that has expired refused there.
    r"|400 Bad Request: No Body|Bad Request \(Service: S3, Status Code: 400"
)
_XML = re.compile(r"<Code>([^<]*)</Code>(?:.*?<Message>([^<]*)</Message>)?", re.DOTALL)
_OF_GOOGLE = re.compile(r"cloud\.storage\.StorageException: ([^\n]*)")
_OF_SDK = re.compile(r"(?:software\.amazon\.awssdk[\w.]*Exception:\s*)+([^\n]*)")
_NOISE = re.compile(r" ?\((?:Service: S3|SDK Attempt Count)[^()]*(?:\([^()]*\)[^()]*)*\)(?::\w*)?")
_CLASSES = re.compile(r"(?:Caused by: )?(?:[a-z]\w*\.)+[A-Z]\w*Exception: ")
_ADDRESS = re.compile(r"\b(?:s3a?|gs)://[^\s'\",:]+")
_LONGEST = 300


def of_object_storage(text: str, where: str = "") -> SourceError | None:
    """Return the error when the text is a library's about a bucket; None when the bucket is not the cause.

    Args:
        text: what was raised, with its causes.
        where: the address that was asked, unless the text names one.
    """
    if not _LIBRARIES.search(text):
        return None
    if named := _ADDRESS.search(text):
        where = where or named[0].rstrip(".").replace("s3a://", "s3://", 1)
    if _NO_BUCKET.search(text):
        return no_bucket(where)
    if _DENIED.search(text):
        return denied(_sentence(text), where)
    return None if _MISSING.search(text) else unreachable(_sentence(text), where)


def of_request(text: str, where: str) -> SourceError:
    """Return the error of a request that failed, and that was not about a missing object."""
    if _NO_BUCKET.search(text):
        return no_bucket(where)
    said = _sentence(text)
    return denied(said, where) if _DENIED.search(text) else unreachable(said, where)


def no_bucket(where: str) -> SourceError:
    return SourceError(
        "storage.no-bucket",
        "the bucket does not exist",
        where=where,
        do="create it, or correct `storage_root:` or `storages:` of include/project.yaml",
    )


def denied(said: str, where: str) -> SourceError:
    return SourceError(
        "storage.denied",
        f"the storage refuses this key: {said}",
        where=where,
        do="check the key of this storage in include/project.yaml: whether it has expired, and may list,"
        " read, write and delete there",
    )


def unreachable(said: str, where: str) -> SourceError:
    return SourceError(
        "storage.unreachable",
        f"the storage answered: {said}",
        where=where,
        do="check that the storage is reachable and that this user may read and write there",
    )


def _sentence(text: str) -> str:
    """Return what the storage itself said, or why it did not, on one line."""
    if answer := _XML.search(text):
        said = ": ".join(filter(None, answer.groups()))
    elif of_google := _OF_GOOGLE.search(text):
        said = of_google[1]
    elif found := _OF_SDK.findall(text):
        # Behind the first sentence come its causes, which say the same.
        said = re.split(r"[: ]*\b(?:[a-z]\w*\.)+[A-Z]\w*Exception\b", _NOISE.sub("", found[0]))[0]
    else:
        lines = text.partition("\n\nDebug")[0].splitlines()
        said = _CLASSES.sub("", next((line for line in lines if _LIBRARIES.search(line)), lines[0]))
    return " ".join(said.split())[:_LONGEST]
