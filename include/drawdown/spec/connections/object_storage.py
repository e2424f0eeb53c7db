"""A bucket of project.yaml: its address, and how to reach it, for obstore, delta-rs and Hadoop alike."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, SecretStr, StringConstraints, model_validator

from drawdown.spec.connections.broker import Address, Secret
from drawdown.values.model import OptionalLine, SpecModel, problem

_ADDRESS = re.compile(r"(s3|s3a|gs)://[a-z0-9][a-z0-9._\-]{1,220}(/[^\x00-\x1f\x7f]*)?")
_NO_GOOGLE_KEY = {"disable_oauth": True, "client_email": "", "private_key": "", "private_key_id": ""}
"""For a server that is not Google's, and is reached without a key."""
_OF_S3 = ("endpoint", "region", "access_key", "secret_key", "session_token")


def is_object_storage(address: str) -> bool:
    """Whether the address is a bucket of S3 or Google Cloud Storage, which Drawdown reaches by itself."""
    return address.startswith(("s3://", "s3a://", "gs://"))


def scheme_of(address: str) -> str:
    """Return ``s3`` or ``gs`` for the address of a bucket."""
    return "gs" if address.startswith("gs:") else "s3"


def for_spark(address: str) -> str:
    """Return the address as Spark gets it: Hadoop's client for S3 is called s3a."""
    return f"s3a://{address.removeprefix('s3://')}" if address.startswith("s3://") else address


def _address(value: str) -> str:
    if not _ADDRESS.fullmatch(value):
        raise problem(
            "wrong-value", "is not the address of a bucket", do="write s3://bucket or gs://bucket/folder"
        )
    return value


class ObjectStorage(SpecModel):
    """A bucket, or a folder of one. ``connection``: an Airflow connection that holds the key.

    Without a key the machine's own is used: its environment, its role, its metadata service.
    ``google_key_file`` is a service account's file, for gs://.
    """

    address: Annotated[str, AfterValidator(_address)]
    endpoint: Address = None
    region: Annotated[str, StringConstraints(pattern=r"^[a-z0-9\-]{1,40}$")] = "us-east-1"
    path_style: bool = True
    access_key: OptionalLine = None
    secret_key: Secret = None
    session_token: Secret = None
    google_key_file: OptionalLine = None
    connection: OptionalLine = None

    @model_validator(mode="after")
    def _key_is_whole(self) -> ObjectStorage:
        if self.connection and (self.access_key or self.secret_key):
            raise problem(
                "contradiction", "the key is in the connection", "connection", do="remove one of them"
            )
        if bool(self.access_key) != bool(self.secret_key):
            here, other = ("access_key", "secret_key") if self.access_key else ("secret_key", "access_key")
            raise problem("missing-key", f"{here} is half of a key", do=f"add `{other}:`")
        if self.session_token and not self.access_key and not self.connection:
            raise problem("no-effect", "a session token needs the key it belongs to", "session_token",
                          do="add `access_key:` and `secret_key:`")  # fmt: skip
        return self

    @model_validator(mode="after")
    def _keys_fit_the_kind(self) -> ObjectStorage:
        if not self.is_s3 and any(
            getattr(self, key) for key in _OF_S3 if key != "region" and key != "endpoint"
        ):
            raise problem("no-effect", "these keys are for S3", "access_key", do="give `google_key_file:`")
        if not self.is_s3 and self.connection:
            raise problem("no-effect", "Google's key is a file", "connection", do="give `google_key_file:`")
        if self.is_s3 and self.google_key_file:
            raise problem("no-effect", "S3 does not use it", "google_key_file", do="remove the key")
        return self

    @property
    def bucket(self) -> str:
        return urlsplit(self.address).netloc

    @property
    def is_s3(self) -> bool:
        return not self.address.startswith("gs:")

    @property
    def has_key(self) -> bool:
        """Whether the project says where the key is; else the machine's own is used."""
        return bool(self.access_key or self.connection or self.google_key_file)

    @property
    def s3_options(self) -> dict[str, str]:
        """Return the options of obstore and delta-rs (the names of Rust's object_store)."""
        options = {
            "aws_region": self.region,
            "aws_virtual_hosted_style_request": str(not self.path_style).lower(),
            # Of many who create a key at the same time, one succeeds.
            "aws_conditional_put": "etag",
        }
        if self.endpoint:
            options["aws_endpoint"] = self.endpoint
            if self.endpoint.startswith("http:"):
                options["allow_http"] = "true"
        return options | {f"aws_{name}": value for name, value in self._key.items()}

    @property
    def google_options(self) -> dict[str, str]:
        """Return the options of obstore and delta-rs for Google Cloud Storage."""
        options = {}
        if self.google_key_file:
            options["google_service_account"] = self.google_key_file
        if self.endpoint:
            options["google_base_url"] = self.endpoint
            if not self.google_key_file:
                # `google_skip_signature` leaves out the key of reads alone.
                options["google_service_account_key"] = json.dumps(_NO_GOOGLE_KEY)
            if self.endpoint.startswith("http:"):
                options["allow_http"] = "true"
        return options

    @property
    def hadoop_options(self) -> dict[str, str]:
        """Return the settings of Hadoop's clients for this bucket alone; with the key in plain text."""
        if not is_object_storage(self.address):
            return {}
        if not self.is_s3:
            return {
                f"fs.gs.bucket.{self.bucket}.{name}": value for name, value in self._google_hadoop.items()
            }
        providers = "org.apache.hadoop.fs.s3a"
        options = {"endpoint.region": self.region, "path.style.access": str(self.path_style).lower()}
        if self.endpoint:
            options["endpoint"] = self.endpoint
            options["connection.ssl.enabled"] = str(not self.endpoint.startswith("http:")).lower()
        if self._key:
            temporary = "session_token" in self._key
            provider = "TemporaryAWSCredentialsProvider" if temporary else "SimpleAWSCredentialsProvider"
            options["aws.credentials.provider"] = f"{providers}.{provider}"
            options["access.key"] = self._key["access_key_id"]
            options["secret.key"] = self._key["secret_access_key"]
            if temporary:
                options["session.token"] = self._key["session_token"]
        return {f"fs.s3a.bucket.{self.bucket}.{name}": value for name, value in options.items()}

    @property
    def _google_hadoop(self) -> dict[str, str]:
        """Return settings behind ``fs.gs.``; those of the endpoint are read by GoogleFiles.java."""
        options = {}
        if self.google_key_file:
            options["auth.type"] = "SERVICE_ACCOUNT_JSON_KEYFILE"
            options["auth.service.account.json.keyfile"] = self.google_key_file
        if self.endpoint:
            options["endpoint"] = self.endpoint
            if not self.google_key_file:
                # A type that asks for no key until it is used.
                options |= {"endpoint.without.key": "true", "auth.type": "COMPUTE_ENGINE"}
        return options

    @property
    def _key(self) -> dict[str, str]:
        given: Mapping[str, Any] = {
            "access_key_id": self.access_key,
            "secret_access_key": self.secret_key,
            "session_token": self.session_token,
        }
        return {
            name: value.get_secret_value() if isinstance(value, SecretStr) else value
            for name, value in given.items()
            if value
        }
