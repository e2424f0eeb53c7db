"""The part of this process's environment that Spark's drivers and daemons get.

The task that starts them has Airflow's own keys and passwords in its environment, and a driver runs the
code of pipelines. So it only gets what Java, Spark, Python and the locale need, Drawdown's own variables,
what project.yaml refers to (``${NAME}``) and what the project passes on (``pass_environment:``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

from drawdown.spec.reading.environment import AIRFLOWS_OWN

PASSED = "DRAWDOWN_PASSED_ENVIRONMENT"
"""The project's names and patterns, comma-separated, for a process that has not read project.yaml."""

_NEEDED = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "HOSTNAME", "PWD", "TERM",
    "LANG", "LANGUAGE", "LC_*", "TZ", "TMPDIR", "TMP", "TEMP",
    "JAVA_HOME", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "LD_LIBRARY_PATH", "LD_PRELOAD", "MALLOC_ARENA_MAX",
    "SPARK_*", "PYSPARK_*", "HADOOP_*", "YARN_CONF_DIR", "KUBECONFIG", "KRB5_CONFIG", "KRB5CCNAME",
    "PYTHON*", "VIRTUAL_ENV", "ARROW_*", "OMP_NUM_THREADS",
    "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
    "DRAWDOWN_*",
)  # fmt: skip


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
    patterns = (*_NEEDED, *passed)
    return {
        name: value
        for name, value in environment.items()
        if _is_one_of(name, patterns) and not name.startswith(AIRFLOWS_OWN)
    }


def _is_one_of(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
