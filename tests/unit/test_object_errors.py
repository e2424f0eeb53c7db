"""What three libraries say of a bucket that fails, as the errors a user sees."""

from __future__ import annotations

import pytest

from drawdown.storage.object_errors import of_object_storage

SDK = "software.amazon.awssdk.services.s3.model.S3Exception"
GOOGLE = "com.google.cloud.hadoop.repackaged.ossgcs.com.google.cloud.storage.StorageException"
OURS = "org.apache.hadoop.fs.s3a"
TEXTS = [
    (
        f"java.nio.file.AccessDeniedException: s3a://lake/t/a.parquet: Writing Object: {SDK}: Access Denied"
        " (Service: S3, Status Code: 403, Request ID: 7F) (SDK Attempt Count: 1):AccessDenied",
        "storage.denied",
        "Access Denied",
    ),
    (
        f"{OURS}.AWSBadRequestException: Writing Object on offsets/1: {SDK}: The provided token has expired."
        " (Service: S3, Status Code: 400, Request ID: null) (SDK Attempt Count: 1):ExpiredToken",
        "storage.denied",
        "The provided token has expired.",
    ),
    (
        f"{OURS}.AWSBadRequestException: getFileStatus on s3a://lake/t: {SDK}: Bad Request"
        " (Service: S3, Status Code: 400, Request ID: null) (SDK Attempt Count: 1)",
        "storage.denied",
        "Bad Request",
    ),
    (
        f"{OURS}.AWSNoResponseException: Writing Object on t/a: software.amazon.awssdk.core.exception."
        "SdkClientException: Unable to execute HTTP request: Connection reset (SDK Attempt Count: 5):"
        " software.amazon.awssdk.core.exception.SdkClientException: Unable to execute HTTP request: reset",
        "storage.unreachable",
        "Unable to execute HTTP request: Connection reset",
    ),
    (
        "java.net.SocketTimeoutException: GET s3a://lake/t: software.amazon.awssdk.core.exception."
        "SdkClientException: Unable to execute HTTP request: Read timed out (SDK Attempt Count: 5)",
        "storage.unreachable",
        "Read timed out",
    ),
    (
        f"{OURS}.AWSServiceThrottledException: Writing Object on t/a: {SDK}: Please reduce your request rate."
        " (Service: S3, Status Code: 503, Request ID: null) (SDK Attempt Count: 5):SlowDown",
        "storage.unreachable",
        "Please reduce your request rate.",
    ),
    (
        f"{OURS}.UnknownStoreException: `s3a://lake/': getFileStatus: software.amazon.awssdk.services.s3."
        "model.NoSuchBucketException: The bucket does not exist (Service: S3, Status Code: 404)",
        "storage.no-bucket",
        "the bucket does not exist",
    ),
    (
        "Generic S3 error: Client error with status 403 Forbidden: <Error><Code>AccessDenied</Code>"
        "<Message>Access Denied</Message></Error>",
        "storage.denied",
        "AccessDenied: Access Denied",
    ),
    (
        "The operation lacked the necessary privileges to complete for path t/1.json: Error performing"
        " PUT http://s3/lake/t in 4ms - Server returned non-2xx status code: 403 Forbidden:"
        " <Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>",
        "storage.denied",
        "AccessDenied: Access Denied",
    ),
    (
        "Generic S3 error: Error performing PUT http://s3/lake/t in 12s, after 6 retries, max_retries: 6 -"
        " HTTP error: error sending request",
        "storage.unreachable",
        "error sending request",
    ),
    (
        f"{GOOGLE}: 401 Unauthorized\nPOST https://storage.googleapis.com/batch/storage/v1",
        "storage.denied",
        "401 Unauthorized",
    ),
    (
        f"{GOOGLE}: Error getting access token for service account: 400 Bad Request\nPOST https://t/token",
        "storage.denied",
        "Error getting access token for service account: 400 Bad Request",
    ),
    (
        f"{GOOGLE}: The specified bucket does not exist.\nCaused by: 404 Not Found",
        "storage.no-bucket",
        "does not exist",
    ),
    (f"{GOOGLE}: Connection refused\nCaused by: java.net", "storage.unreachable", "Connection refused"),
    (
        "Generic GCS error: GCP credential error: Unable to open service account file from /k.json: No such"
        " file or directory (os error 2)",
        "storage.denied",
        "Unable to open service account file from /k.json",
    ),
]


@pytest.mark.parametrize(("text", "id", "said"), TEXTS)
def test_a_library_of_a_bucket_is_heard_without_its_classes(text: str, id: str, said: str) -> None:
    error = of_object_storage(
        f"Job aborted\n{text}\n\tat {OURS}.S3AUtils.translate(S3AUtils.java:1)", "s3://l"
    )
    assert error is not None
    assert (error.id, error.exit_code) == (id, 5)
    assert said in error.what
    for noise in ("software.", "Exception", "Request ID", "Attempt Count", "<Code>", "\n"):
        assert noise not in error.what
    assert error.where == "s3://l"


@pytest.mark.parametrize(
    "text",
    [
        "java.nio.file.AccessDeniedException: /data/out",
        "java.net.SocketTimeoutException: Read timed out",
        "[CAST_INVALID_INPUT] The value 'AccessDenied' cannot be cast",
        f"java.io.FileNotFoundException: No such file or directory: s3a://lake/a ({OURS}.S3AFileSystem)",
    ],
)
def test_what_is_not_about_a_bucket_is_left_to_others(text: str) -> None:
    assert of_object_storage(text) is None
