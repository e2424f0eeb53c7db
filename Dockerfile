# One image for every part: Airflow, Java, pyspark, the connector jars and this project's folders.
# Another base has Debian 12, Python 3.11 and the packages python3-venv and ca-certificates.
ARG BASE=python:3.11.14-slim-bookworm
FROM ${BASE}

# tini hands signals on and collects orphans: a drain has many children. curl is for health checks.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless tini curl \
    && rm -rf /var/lib/apt/lists/*

# A program that its user may run but not read is closed to that user's other processes (execve(2)). These two get
# a service's whole environment, in the container whose drivers run the code of pipelines.
RUN chmod 0711 "$(command -v tini)" "$(command -v curl)"

# A named volume takes owner and mode from the folder it covers.
RUN groupadd --gid 50000 drawdown \
    && useradd --uid 50000 --gid 50000 --create-home drawdown \
    && install -d -o drawdown -g drawdown -m 0700 /var/lib/drawdown/airflow /var/lib/drawdown/login /var/lib/drawdown/storage /var/lib/drawdown/spark

WORKDIR /opt/drawdown
# What `make setup` does, before the pipelines come in: a change of theirs makes no new environment.
COPY requirements.txt pyproject.toml README.md LICENSE ./
COPY include/drawdown include/drawdown
COPY dev dev
# .drawdown holds the jars, checked by SHA-256, and the class archive: root's. Runs write only what is named here.
# Package indexes of the place that builds come as secrets, which no layer keeps (docs/deployment.md).
RUN --mount=type=secret,id=indexes \
    --mount=type=secret,id=certificates \
    --mount=type=secret,id=java-certificates \
    if [ -f /run/secrets/indexes ]; then set -a && . /run/secrets/indexes && set +a; fi \
    && { HOME=/tmp SPARK_LOCAL_IP=127.0.0.1 python3 dev/bootstrap.py || { tail -n 40 .drawdown/logs/setup.log; exit 1; } } \
    && rm -rf /tmp/.cache /tmp/.ivy2* \
    && rm -rf .drawdown/logs \
    && install -d -o drawdown -g drawdown -m 0700 .drawdown/logs .drawdown/runs .drawdown/clusters

COPY include include
COPY dags dags
COPY jobs jobs
COPY plugins plugins
# The user who runs this may write no code here, so compile what has come in.
RUN .venv/bin/python -m compileall -q include dev dags plugins

ENV PATH=/opt/drawdown/.venv/bin:$PATH \
    PYSPARK_PYTHON=/opt/drawdown/.venv/bin/python \
    PYTHONDONTWRITEBYTECODE=1 \
    AIRFLOW_HOME=/var/lib/drawdown/airflow \
    DRAWDOWN_PROJECT=/opt/drawdown \
    DRAWDOWN_STORAGE=/var/lib/drawdown/storage

USER 50000:50000
ENTRYPOINT ["tini", "--"]
CMD ["drawdown", "--help"]
