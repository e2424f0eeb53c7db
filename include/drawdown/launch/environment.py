"""The part of this process's environment that Spark's drivers and daemons get.

The task that starts them has Airflow's own keys and passwords in its environment, and a driver runs the
code of pipelines. So it only gets what Java, Spark, Python and the locale need, Drawdown's own variables,
what project.yaml refers to (``${NAME}``) and what the project passes on (``pass_environment:``). A bucket
without a key in project.yaml is reached by the machine's own, so then a driver gets that, too. And a driver
sends the events of lineage: it gets what OpenLineage's client reads, unless project.yaml says where to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

from drawdown.spec import Project
from drawdown.spec.reading.environment import AIRFLOWS_OWN
from drawdown.spec.reading.secrets import names_a_secret

PASSED = "DRAWDOWN_PASSED_ENVIRONMENT"
"""The project's names and patterns, comma-separated, for a process that has not read project.yaml."""

ALWAYS = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "HOSTNAME", "PWD", "TERM",
    "LANG", "LANGUAGE", "LC_*", "TZ", "TMPDIR", "TMP", "TEMP",
    "JAVA_HOME", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "LD_LIBRARY_PATH", "LD_PRELOAD", "MALLOC_ARENA_MAX",
    "SPARK_*", "PYSPARK_*", "HADOOP_*", "YARN_CONF_DIR", "KUBECONFIG", "KRB5_CONFIG", "KRB5CCNAME",
    "PYTHON*", "VIRTUAL_ENV", "ARROW_*", "OMP_NUM_THREADS",
    "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
    "HADOOP_TOKEN_FILE_LOCATION", "DRAWDOWN_*", "DRAWDOWN_CREDENTIALS",
    "OPENLINEAGE_NAMESPACE", "OPENLINEAGE_DISABLED", "OPENLINEAGE_PARENT_ID", "OPENLINEAGE_ROOT_PARENT_ID",
    "OPENLINEAGE__FACETS*", "OPENLINEAGE__FILTERS*", "OPENLINEAGE__TAGS*",
)  # fmt: skip
"""Always passed on. A pattern takes no name that says it holds a secret (HADOOP_CREDSTORE_PASSWORD): the
project names those that it needs."""

_OF_LINEAGE = ("OPENLINEAGE_*",)

_OF_AMAZON = (
    "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION", "AWS_DEFAULT_REGION",
    # Roles: of a pod or a user that a token stands for, of a container, of a machine.
    "AWS_ROLE_ARN", "AWS_ROLE_SESSION_NAME", "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    "AWS_EC2_METADATA_SERVICE_ENDPOINT", "AWS_EC2_METADATA_DISABLED",
)  # fmt: skip
_OF_GOOGLE = (
    "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_PATH",
    "GOOGLE_SERVICE_ACCOUNT_KEY", "GCE_METADATA_HOST",
)  # fmt: skip


def passed_by(project: Project) -> tuple[str, ...]:
    """Return the names and patterns of a project, as `for_spark` takes them."""
    keyless = project.buckets_without_a_key
    names = {*project.passed_environment}
    if any(address.startswith("s3") for address in keyless):
        names |= {*_OF_AMAZON}
    if any(address.startswith("gs") for address in keyless):
        names |= {*_OF_GOOGLE}
    if not (project.lineage.url or project.lineage.file):
        names |= {*_OF_LINEAGE}
    return tuple(sorted(names))


def for_spark(environment: Mapping[str, str], passed: Iterable[str] | None = None) -> dict[str, str]:
    """Return the part of an environment that Spark gets.

    Args:
        environment: this process's environment.
        passed: names and patterns of the project; None: as in ``DRAWDOWN_PASSED_ENVIRONMENT``. If that is
            not set either, the project is unknown, and everything except Airflow's own is passed on.
    """
    if passed is None:
        said = environment.get(PASSED)
        passed = ["*"] if said is None else said.split(",")
    asked = [*passed]
    return {
        name: value
        for name, value in environment.items()
        if (_is_needed(name) or _is_one_of(name, asked)) and not name.startswith(AIRFLOWS_OWN)
    }


def _is_needed(name: str) -> bool:
    return name in ALWAYS or (_is_one_of(name, ALWAYS) and not names_a_secret(name))


def _is_one_of(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
